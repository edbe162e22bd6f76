-- Exact latency quantiles per tool, in seconds: calls (back-off included) against attempts (not).
-- classes keeps only calls and attempts of these classes.
-- Parameters: since, until, tools, classes, regions.
WITH calls AS (
    SELECT tool, duration_seconds, backoff_seconds, weight
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND @among($classes::VARCHAR[], error_class)
),
of_calls AS (
    SELECT tool, SUM(weight) AS calls,
           @quantile(duration_seconds, 0.5) AS p50,
           @quantile(duration_seconds, 0.95) AS p95,
           @quantile(duration_seconds, 0.99) AS p99,
           MAX(duration_seconds) AS slowest,
           SUM(weight * duration_seconds) / NULLIF(SUM(weight), 0) AS mean,
           SUM(weight * COALESCE(backoff_seconds, 0)) / NULLIF(SUM(weight), 0) AS mean_backoff
    FROM calls
    GROUP BY tool
),
of_attempts AS (
    SELECT tool, COUNT(*) AS attempts_made,
           @quantile(duration_seconds, 0.5) AS attempt_p50,
           @quantile(duration_seconds, 0.95) AS attempt_p95,
           @quantile(duration_seconds, 0.99) AS attempt_p99
    FROM attempts
    WHERE @later("start", duration_seconds) > $since::TIMESTAMP
      AND @later("start", duration_seconds) <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
      AND @among($classes::VARCHAR[], error_class)
    GROUP BY tool
)
SELECT of_calls.*, of_attempts.attempts_made, of_attempts.attempt_p50,
       of_attempts.attempt_p95, of_attempts.attempt_p99
FROM of_calls
LEFT JOIN of_attempts ON of_attempts.tool = of_calls.tool
ORDER BY of_calls.p99 DESC, of_calls.tool
LIMIT 1000;
