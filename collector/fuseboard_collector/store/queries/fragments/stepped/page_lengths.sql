-- Of all tools and regions together: nothing else is asked for.
SELECT "end" AS moment, NULL::VARCHAR AS tool, NULL::VARCHAR AS region, NULL::VARCHAR AS error_class,
       COALESCE(step, @step(duration_seconds, 8))::SMALLINT AS length, weight
FROM (
    -- include page_raw_calls
) AS raw_calls
UNION ALL
SELECT span + INTERVAL 1 MICROSECOND AS moment, NULL::VARCHAR AS tool, NULL::VARCHAR AS region,
       NULL::VARCHAR AS error_class, step AS length, weight
FROM steps_15m
-- include page_of_quarters
