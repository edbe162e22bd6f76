SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class, step,
       duration_seconds AS length, weight
FROM (
    -- include page_all_calls
) AS raw_calls
