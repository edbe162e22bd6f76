-- One row per tool and region, with the columns of page_totals; most errors first.
-- Parameters: since, until, tools, classes, regions.
WITH summed AS (
    SELECT tool, region, MAX(last_end) AS newest,
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
    SELECT tool, region, MAX(newest) AS last_end,
           -- include page_call_counts
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
SELECT counts.*,
       -- include page_bounded_quantiles
FROM counts
JOIN quantiles ON quantiles.tool = counts.tool AND quantiles.region = counts.region
ORDER BY errors DESC, retried DESC, calls DESC, counts.tool, counts.region
LIMIT 2000;
