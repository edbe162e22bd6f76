-- The columns of page_slo per bucket of time, all chosen tools together. Buckets as in page_series.
-- Parameters: since, until, tools, regions, bucket_us, bound_tools, bound_seconds, slow_seconds.
WITH summed AS (
    SELECT @bucket(moment, $bucket_us::BIGINT) AS bucket, outcome, error_class, SUM(weight) AS n
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2, 3
),
counts AS (
    SELECT bucket,
           -- include page_objective_counts
    FROM summed
    GROUP BY 1
),
slowness AS (
    SELECT @bucket(moment, $bucket_us::BIGINT) AS slow_bucket, SUM(slow) AS n_slow
    FROM (
        -- include page_slow_calls of tool_calls by moment
    ) AS measured
    GROUP BY 1
)
SELECT bucket, calls, judged, errors, answered, unsound, COALESCE(n_slow, 0) AS slow
FROM counts
LEFT JOIN slowness ON slow_bucket = bucket
ORDER BY bucket
LIMIT 5000;
