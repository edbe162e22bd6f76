-- Calls, errors and stand-ins per bucket of the twenty tools with most of the latter two. Buckets as
-- in page_series. Parameters: since, until, tools, regions, bucket_us (microseconds).
WITH counted AS (
    SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket, tool, SUM(weight) AS calls,
           COALESCE(SUM(weight) FILTER (WHERE outcome IN ('error', 'rejected')
                                    AND COALESCE(error_class, 'unclassified') <> 'L1_input'), 0)
               AS errors,
           COALESCE(SUM(weight) FILTER (WHERE outcome = 'degraded'), 0) AS degraded
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2
),
summed AS (
    SELECT *, SUM(errors + degraded) OVER (PARTITION BY tool) AS bad_of_tool FROM counted
),
ranked AS (
    SELECT *, dense_rank() OVER (ORDER BY bad_of_tool DESC, tool) AS place FROM summed
)
SELECT bucket, tool, calls, errors, degraded
FROM ranked
WHERE place <= 20 AND bad_of_tool > 0
ORDER BY bucket, tool
LIMIT 5000;
