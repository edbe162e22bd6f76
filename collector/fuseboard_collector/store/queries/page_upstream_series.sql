-- Errors of tools per bucket, upstream and region; buckets without errors are left out. Buckets as in
-- page_series. Parameters: since, until, tools, classes, regions, bucket_us (microseconds), upstream
-- (NULL = every one).
SELECT @bucket("end", $bucket_us::BIGINT) AS bucket, upstream, place AS region, tool,
       SUM(judged_weight) AS judged, SUM(error_weight) AS errors
FROM (
    -- include page_judged_rows
) AS judged_rows
WHERE upstream IS NOT NULL
  AND ($upstream::VARCHAR IS NULL OR upstream = $upstream::VARCHAR)
GROUP BY 1, 2, 3, 4
HAVING SUM(error_weight) > 0
ORDER BY errors DESC, 1, 2, 3, 4
LIMIT 10000;
