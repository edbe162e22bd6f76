SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       duration_seconds AS length, weight
FROM (
    -- include page_all_attempts
) AS raw_attempts
