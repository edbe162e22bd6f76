SELECT time_bucket(INTERVAL 1 HOUR, "end" - INTERVAL 1 MICROSECOND) AS span, tool,
       COALESCE(region, 'unknown') AS region,
       error_class, @step(duration_seconds, 8)::SMALLINT AS step, SUM(weight) AS weight
FROM tool_calls
-- include of_the_span
  AND error_class IS NOT NULL
GROUP BY ALL
ORDER BY span, tool, region, error_class, step;
