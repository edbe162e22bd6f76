-- One row per bucket of time, with the columns of page_totals. Buckets are (b, b + width] and
-- lie on multiples of the width since the epoch, so they stay put while the window moves.
-- The slowest call and every error of a bucket survive the thinning.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
WITH calls AS (
    SELECT *,
           outcome IN ('error', 'rejected') AND COALESCE(error_class, 'unclassified') <> 'L1_input'
               AND ($classes::VARCHAR[] IS NULL
                    OR list_contains($classes::VARCHAR[], COALESCE(error_class, 'unclassified')))
               AS is_error,
           (error_class IS NOT NULL OR outcome IN ('error', 'rejected'))
               AND ($classes::VARCHAR[] IS NULL
                    OR list_contains($classes::VARCHAR[], COALESCE(error_class, 'unclassified')))
               AS is_fault
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
      AND ($regions::VARCHAR[] IS NULL
           OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
)
SELECT make_timestamp(((epoch_us("end") - 1) // $bucket_us::BIGINT) * $bucket_us::BIGINT)
           AS bucket,
       COALESCE(SUM(weight), 0) AS calls,
       COALESCE(SUM(weight) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')),
                0) AS judged,
       COALESCE(SUM(weight) FILTER (WHERE is_error), 0) AS errors,
       COALESCE(SUM(weight) FILTER (WHERE is_error AND outcome = 'rejected'), 0) AS rejected,
       COALESCE(SUM(weight) FILTER (WHERE outcome = 'degraded'), 0) AS degraded,
       COALESCE(SUM(weight) FILTER (WHERE outcome = 'partial'), 0) AS partials,
       COALESCE(SUM(weight) FILTER (WHERE is_fault), 0) AS faults,
       COALESCE(SUM(weight) FILTER (WHERE attempts >= 1), 0) AS attempted,
       COALESCE(SUM(weight) FILTER (WHERE attempts >= 2), 0) AS retried,
       COALESCE(SUM(weight * attempts), 0) AS attempts_made,
       COALESCE(SUM(weight * COALESCE(backoff_seconds, 0)), 0) AS backoff_total,
       COALESCE(SUM(weight * COALESCE(attempt_seconds, 0)), 0) AS attempt_total,
       COALESCE(SUM(weight * duration_seconds), 0) AS duration_total,
       quantile_disc(duration_seconds, 0.5) AS p50,
       quantile_disc(duration_seconds, 0.95) AS p95,
       quantile_disc(duration_seconds, 0.99) AS p99,
       MAX(duration_seconds) AS slowest
FROM calls
GROUP BY 1
ORDER BY 1
LIMIT 5000;
