-- Hashes by their numbers.
SELECT tool, argument, argument_text, class_of_fault, weight
FROM (
    SELECT tool, region, args_key AS argument, NULL AS argument_text, class_of_fault, weight
    FROM (
        -- include page_keyed_faults
    ) AS keyed_faults
    WHERE args_key > 0
    -- include page_failing_by_text
) AS numbered
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
