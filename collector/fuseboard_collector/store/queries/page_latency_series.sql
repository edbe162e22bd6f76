-- Exact latency quantiles of calls per bucket, in seconds, and the mean split into attempts and
-- back-off. classes keeps only calls of these classes. Buckets as in page_series.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT @bucket("end", $bucket_us::BIGINT) AS bucket,
       SUM(weight) AS calls,
       @quantile(duration_seconds, 0.5) AS p50,
       @quantile(duration_seconds, 0.95) AS p95,
       @quantile(duration_seconds, 0.99) AS p99,
       MAX(duration_seconds) AS slowest,
       SUM(weight * COALESCE(attempt_seconds, 0)) / NULLIF(SUM(weight), 0) AS mean_attempt,
       SUM(weight * COALESCE(backoff_seconds, 0)) / NULLIF(SUM(weight), 0) AS mean_backoff,
       SUM(weight * duration_seconds) / NULLIF(SUM(weight), 0) AS mean
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
  AND @among($classes::VARCHAR[], error_class)
GROUP BY 1
ORDER BY 1
LIMIT 5000;
