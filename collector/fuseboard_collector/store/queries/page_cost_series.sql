-- Costs per bucket: of all attempts that ended in it, and of those that failed. What fallbacks cost is
-- no attempt's. Buckets as in page_series. Parameters: since, until, tools, regions, bucket_us
-- (microseconds).
SELECT @bucket("end", $bucket_us::BIGINT) AS bucket, SUM(weight * cost) AS attempt_cost,
       SUM(CASE WHEN result = 'failure' AND error_class IS NOT NULL THEN weight * cost ELSE 0 END)
           AS failed_cost
FROM attempts
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND cost IS NOT NULL
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
GROUP BY 1
ORDER BY 1
LIMIT 5000;
