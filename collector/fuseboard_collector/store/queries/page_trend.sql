-- Counts per bucket, tool and region: sparklines, and the series below breakers.
-- Buckets as in page_series. Parameters: since, until, tools, classes, regions, bucket_us.
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
       tool, COALESCE(region, 'unknown') AS region,
       SUM(weight) AS calls,
       COALESCE(SUM(weight) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')),
                0) AS judged,
       COALESCE(SUM(weight) FILTER (WHERE is_error), 0) AS errors,
       COALESCE(SUM(weight) FILTER (WHERE attempts >= 1), 0) AS attempted,
       COALESCE(SUM(weight) FILTER (WHERE attempts >= 2), 0) AS retried,
       quantile_disc(duration_seconds, 0.99) AS p99
FROM calls
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT 100000;
