-- Calls per bucket, outcome and error class. classes narrows the faults; calls without a fault
-- stay only where no class is chosen. Buckets as in page_series.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
WITH calls AS (
    SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket, outcome, error_class, SUM(weight) AS n
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2, 3
)
SELECT bucket, outcome,
       CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
            ELSE error_class END AS error_class,
       SUM(n) AS calls
FROM calls
WHERE @among($classes::VARCHAR[],
             CASE WHEN outcome IN ('error', 'rejected') THEN COALESCE(error_class, 'unclassified')
                  ELSE error_class END)
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT 20000;
