-- Calls per bucket, outcome and error class. classes narrows the faults; calls without a fault
-- stay only where no class is chosen. Buckets as in page_series.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT make_timestamp(((epoch_us("end") - 1) // $bucket_us::BIGINT) * $bucket_us::BIGINT)
           AS bucket,
       outcome,
       CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
            ELSE error_class END AS error_class,
       SUM(weight) AS calls
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND ($tools::VARCHAR[] IS NULL OR list_contains($tools::VARCHAR[], tool))
  AND ($regions::VARCHAR[] IS NULL
       OR list_contains($regions::VARCHAR[], COALESCE(region, 'unknown')))
  AND ($classes::VARCHAR[] IS NULL
       OR (error_class IS NOT NULL AND list_contains($classes::VARCHAR[], error_class))
       OR (error_class IS NULL AND outcome IN ('error', 'rejected')
           AND list_contains($classes::VARCHAR[], 'unclassified')))
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT 20000;
