-- One row per tool and region: some of the counts of page_totals, and the 99th percentile of latency
-- in seconds; most errors first.
-- Parameters: since, until, tools, classes, regions.
WITH summed AS (
    SELECT tool, region,
           -- include page_sums
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY tool, region, outcome, error_class
),
calls AS (
    -- include page_judged of summed
),
counts AS (
    SELECT tool, region,
           -- include page_fault_counts
    FROM calls
    GROUP BY 1, 2
),
lengths AS
-- include page_read_again
(
    SELECT tool, region,
           -- include page_length_columns
    FROM (
        -- include page_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
),
quantiles AS (
    -- include page_quantiles of lengths by tool, region
)
SELECT counts.*, least(quantiles.p99, slowest) AS p99
FROM counts
JOIN quantiles ON quantiles.tool = counts.tool AND quantiles.region = counts.region
ORDER BY errors DESC, retried DESC, calls DESC, counts.tool, counts.region
LIMIT 2000;
