-- Counts per bucket, tool and region: sparklines, and the series below breakers.
-- Buckets as in page_series. Parameters: since, until, tools, classes, regions, bucket_us.
WITH chosen AS (
    -- include page_chosen_cells
),
calls AS (
    -- include page_judged of chosen
)
SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket, tool, region,
       SUM(weight) AS calls,
       COALESCE(SUM(weight) FILTER (WHERE outcome NOT IN ('cancelled', 'abandoned', 'interrupted')),
                0) AS judged,
       COALESCE(SUM(weight) FILTER (WHERE is_error), 0) AS errors,
       COALESCE(SUM(weight_attempted), 0) AS attempted,
       COALESCE(SUM(weight_retried), 0) AS retried
FROM calls
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT 100000;
