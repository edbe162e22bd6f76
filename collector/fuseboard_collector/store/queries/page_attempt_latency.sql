-- Latency quantiles of attempts per tool, in seconds. classes keeps only attempts of these classes.
-- Parameters: since, until, tools, classes, regions.
WITH attempt_lengths AS
-- include page_read_again
(
    SELECT tool,
           -- include page_length_columns
    FROM (
        -- include page_classed_attempt_lengths
    ) AS all_lengths
    WHERE @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], region)
      AND @among($classes::VARCHAR[], error_class)
),
quantiles AS (
    -- include page_quantiles of attempt_lengths by tool
)
SELECT tool, total AS attempts_made, p50 AS attempt_p50, p95 AS attempt_p95, p99 AS attempt_p99
FROM quantiles
ORDER BY attempt_p99 DESC, tool
LIMIT 5000;
