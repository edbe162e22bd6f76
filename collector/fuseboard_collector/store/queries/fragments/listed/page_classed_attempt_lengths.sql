SELECT "end" AS moment, tool, COALESCE(region, 'unknown') AS region, error_class,
       @step(duration_seconds, 8)::SMALLINT AS step,
       duration_seconds AS length, NULL::DOUBLE[] AS lengths, weight
FROM (
    -- include page_raw_attempts
) AS raw_attempts
UNION ALL
-- include page_listed_rows of attempt_durations
