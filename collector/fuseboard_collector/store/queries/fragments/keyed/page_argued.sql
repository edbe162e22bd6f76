-- Hashes by their numbers.
SELECT tool, region, args_key AS argument, NULL AS argument_text, class_of_fault, weight,
       last_end
FROM (
    -- include page_keyed_calls
) AS keyed_calls
WHERE args_key > 0
-- include page_argued_by_text
