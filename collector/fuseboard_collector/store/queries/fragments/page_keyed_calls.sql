SELECT tool, COALESCE(region, 'unknown') AS region, args_key, args_hash,
       CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
            ELSE error_class END AS class_of_fault,
       weight, "end" AS last_end
FROM (
    -- include page_raw_calls
    -- include page_calls_of_hours
) AS raw_calls
-- include page_rolled_arguments
