-- How old answers were that tell it, per bucket, in seconds: answers, median, 95th percentile, oldest.
-- Buckets as in page_series; a width beyond the window makes one of all.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT bucket, COUNT(*) AS answers, @quantiles(age)[1] AS p50, @quantiles(age)[2] AS p95,
       MAX(age) AS oldest
FROM (
    SELECT @bucket("end", $bucket_us::BIGINT) AS bucket, result_age_seconds AS age
    FROM (
        -- include page_stand_ins
    ) AS stand_ins
    WHERE result_age_seconds IS NOT NULL
) AS aged
GROUP BY 1
ORDER BY 1
LIMIT 5000;
