SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       @step(duration_seconds, 8)::SMALLINT AS length, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
-- include page_classed_rows of fault_durations
