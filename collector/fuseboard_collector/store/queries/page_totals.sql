-- The window in one row: counts (weighted) and latency quantiles in seconds.
-- judged = all calls without cancelled, abandoned and interrupted; errors = error and rejected
-- without L1_input; error rate = errors / judged; retry rate = retried / attempted;
-- amplification = attempts_made / attempted. classes narrows errors and faults, nothing else.
-- Parameters: since, until, tools, classes, regions.
WITH summed AS (
    SELECT
        -- include page_sums
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY outcome, error_class
),
calls AS (
    -- include page_judged of summed
),
counts AS (
    SELECT
        -- include page_call_counts
    FROM calls
),
lengths AS
-- include page_read_again
(
    SELECT 0 AS bucket,
           -- include page_length_columns
    FROM (
        -- include page_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
),
quantiles AS (
    -- include page_quantiles of lengths by bucket
)
SELECT counts.*,
       -- include page_bounded_quantiles
FROM counts
LEFT JOIN quantiles ON TRUE;
