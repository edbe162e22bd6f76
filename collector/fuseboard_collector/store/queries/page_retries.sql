-- Retries per tool and region. First try = the first attempt succeeded; recovered = retried and
-- ended ok or partial; exhausted = retried and did not. All over calls that made an attempt.
-- Parameters: since, until, tools, regions.
WITH summed AS (
    SELECT tool, region, outcome, SUM(weight_attempted) AS n_attempted,
           SUM(weight_retried) AS n_retried, SUM(weight_first) AS n_first,
           SUM(attempts_sum) AS n_attempts, SUM(backoff_sum) AS in_backoff
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1, 2, 3
)
SELECT tool, region,
       SUM(n_attempted) AS attempted,
       SUM(n_retried) AS retried,
       SUM(n_attempts) AS attempts_made,
       SUM(n_first) AS first_try,
       COALESCE(SUM(n_attempted) FILTER (WHERE outcome IN ('ok', 'partial')), 0) AS succeeded,
       COALESCE(SUM(n_retried) FILTER (WHERE outcome IN ('ok', 'partial')), 0) AS recovered,
       COALESCE(SUM(n_retried) FILTER (WHERE outcome IN ('error', 'degraded', 'rejected')), 0)
           AS exhausted,
       SUM(in_backoff) AS backoff_total,
       SUM(n_attempts) / NULLIF(SUM(n_attempted), 0) AS amplification,
       SUM(n_retried) / NULLIF(SUM(n_attempted), 0) AS retry_ratio
FROM summed
GROUP BY 1, 2
HAVING SUM(n_attempted) > 0
ORDER BY retried DESC, attempted DESC, tool, region
LIMIT 1000;
