-- One row per bucket of time, with the columns of page_totals. Buckets are (b, b + width] and
-- lie on multiples of the width since the epoch, so they stay put while the window moves.
-- The slowest call and every error of a bucket survive the thinning.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
WITH calls AS (
    -- include page_calls_in_window
)
SELECT @bucket("end", $bucket_us::BIGINT) AS bucket,
       -- include page_call_counts
FROM calls
GROUP BY 1
ORDER BY 1
LIMIT 5000;
