SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       COALESCE(step, @step(duration_seconds, 8))::SMALLINT AS step,
       duration_seconds AS length, NULL::DOUBLE[] AS lengths, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
-- include page_listed_rows of durations
