-- Exact latency quantiles of calls per bucket, in seconds, and the mean split into attempts and
-- back-off. classes keeps only calls of these classes. Buckets as in page_series.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT make_timestamp(((epoch_us("end") - 1) // $bucket_us::BIGINT) * $bucket_us::BIGINT)
           AS bucket,
       SUM(weight) AS calls,
       quantile_disc(duration_seconds, 0.5) AS p50,
       quantile_disc(duration_seconds, 0.95) AS p95,
       quantile_disc(duration_seconds, 0.99) AS p99,
       MAX(duration_seconds) AS slowest,
       SUM(weight * COALESCE(attempt_seconds, 0)) / NULLIF(SUM(weight), 0) AS mean_attempt,
       SUM(weight * COALESCE(backoff_seconds, 0)) / NULLIF(SUM(weight), 0) AS mean_backoff,
       SUM(weight * duration_seconds) / NULLIF(SUM(weight), 0) AS mean
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
  AND ($regions::VARCHAR[] IS NULL
       OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
  AND ($classes::VARCHAR[] IS NULL OR list_contains($classes::VARCHAR[], error_class))
GROUP BY 1
ORDER BY 1
LIMIT 5000;
