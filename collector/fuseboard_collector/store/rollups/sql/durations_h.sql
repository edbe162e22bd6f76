SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span, tool,
       COALESCE(region, 'unknown') AS region,
       COALESCE(step, @step(duration_seconds, 8))::SMALLINT AS step, SUM(weight) AS weight,
       list(duration_seconds) AS lengths
FROM tool_calls
-- include of_the_span
GROUP BY ALL
ORDER BY span, tool, region, step;
