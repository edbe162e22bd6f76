-- One row per bucket of time, with the columns of page_totals. Buckets are (b, b + width] and
-- lie on multiples of the width since the epoch, so they stay put while the window moves.
-- The slowest call and every error of a bucket survive the thinning.
-- Parameters: since, until, tools, classes, regions, bucket_us (microseconds).
WITH summed AS (
    SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket,
           -- include page_sums
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY bucket, outcome, error_class
),
calls AS (
    -- include page_judged of summed
),
counts AS (
    SELECT bucket,
           -- include page_call_counts
    FROM calls
    GROUP BY 1
),
lengths AS
-- include page_read_again
(
    SELECT @slot(moment, $bucket_us::BIGINT) AS slot,
           -- include page_length_columns
    FROM (
        -- include page_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
),
quantiles AS (
    -- include page_quantiles of lengths by slot
)
SELECT counts.*,
       -- include page_bounded_quantiles
FROM counts
JOIN quantiles ON @slot_start(quantiles.slot, $bucket_us::BIGINT) = counts.bucket
ORDER BY bucket
LIMIT 5000;
