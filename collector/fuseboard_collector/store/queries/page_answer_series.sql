-- Answers per bucket by where they came from, as page_answers tells them apart. Buckets as in
-- page_series. Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
SELECT @bucket("end", $bucket_us::BIGINT) AS bucket, outcome, result_source, SUM(weight) AS calls
FROM (
    -- include page_stand_ins
) AS stand_ins
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3
LIMIT 20000;
