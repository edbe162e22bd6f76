SELECT tool, COALESCE(region, 'unknown') AS region, args_hash AS argument,
       args_hash AS argument_text,
       CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
            ELSE error_class END AS class_of_fault,
       weight, "end" AS last_end
FROM (
    -- include page_all_calls
) AS raw_calls
WHERE args_hash IS NOT NULL
