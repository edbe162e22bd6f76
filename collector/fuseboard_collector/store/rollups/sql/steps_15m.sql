SELECT time_bucket(INTERVAL 15 MINUTE, "end" - INTERVAL 1 MICROSECOND) AS span,
       COALESCE(step, @step(duration_seconds, 8))::SMALLINT AS step, SUM(weight) AS weight
FROM tool_calls
-- include of_the_span
GROUP BY ALL
ORDER BY span, step;
