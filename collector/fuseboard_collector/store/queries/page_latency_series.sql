-- Latency quantiles of calls per bucket, in seconds, and the mean split into attempts and
-- back-off. classes keeps only calls of these classes. Buckets as in page_series.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
WITH counts AS (
    SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket,
           SUM(weight) AS calls,
           MAX(duration_max) AS slowest,
           SUM(attempt_sum) / NULLIF(SUM(weight), 0) AS mean_attempt,
           SUM(backoff_sum) / NULLIF(SUM(weight), 0) AS mean_backoff,
           SUM(duration_sum) / NULLIF(SUM(weight), 0) AS mean
    FROM (
        -- include page_cells
    ) AS cells
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], error_class)
    GROUP BY 1
),
lengths AS
-- include page_read_again
(
    SELECT @slot(moment, $bucket_us::BIGINT) AS slot,
           -- include page_length_columns
    FROM (
        -- include page_classed_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], error_class)
),
quantiles AS (
    -- include page_quantiles of lengths by slot
)
SELECT counts.*,
       -- include page_bounded_quantiles
FROM counts
JOIN quantiles ON @slot_start(quantiles.slot, $bucket_us::BIGINT) = counts.bucket
ORDER BY bucket
LIMIT 5000;
