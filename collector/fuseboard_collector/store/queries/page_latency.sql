-- Latency quantiles of calls per tool, in seconds, back-off included; page_attempt_latency has those
-- of their attempts. classes keeps only calls of these classes.
-- Parameters: since, until, tools, classes, regions.
WITH of_calls AS (
    SELECT tool, SUM(weight) AS calls, MAX(duration_max) AS slowest,
           SUM(duration_sum) / NULLIF(SUM(weight), 0) AS mean,
           SUM(backoff_sum) / NULLIF(SUM(weight), 0) AS mean_backoff
    FROM (
        -- include page_cells
    ) AS cells
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], error_class)
    GROUP BY tool
),
lengths AS
-- include page_read_again
(
    SELECT tool,
           -- include page_length_columns
    FROM (
        -- include page_classed_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], error_class)
),
quantiles AS (
    -- include page_quantiles of lengths by tool
)
SELECT of_calls.tool AS tool, calls, slowest, mean, mean_backoff,
       -- include page_bounded_quantiles
FROM of_calls
JOIN quantiles ON quantiles.tool = of_calls.tool
ORDER BY p99 DESC, of_calls.tool
LIMIT 1000;
