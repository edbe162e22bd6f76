SELECT tool, COALESCE(region, 'unknown') AS region,
       COALESCE(error_class, 'unclassified') AS class_of_fault, classifier_id, error_type,
       http_status, weight, "end" AS last_end
FROM (
    -- include page_raw_calls
) AS raw_calls
WHERE error_class IS NOT NULL OR outcome IN ('error', 'rejected')
-- include page_rolled_faults
