SELECT tool, COALESCE(region, 'unknown') AS region, args_key, args_hash,
       COALESCE(error_class, 'unclassified') AS class_of_fault, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
WHERE error_class IS NOT NULL OR outcome IN ('error', 'rejected')
UNION ALL
SELECT tool, region, args_key, args_hash, error_class, weight
FROM fault_arguments_h
-- include page_of_hours
-- include page_rolled_failing
