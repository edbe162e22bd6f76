-- Retries per tool and region. First try = the first attempt succeeded; recovered = retried and
-- ended ok or partial; exhausted = retried and did not. All over calls that made an attempt.
-- Parameters: since, until, tools, regions.
SELECT tool, region,
       SUM(weight_attempted) AS attempted,
       SUM(weight_retried) AS retried,
       SUM(attempts_sum) AS attempts_made,
       SUM(weight_first) AS first_try,
       COALESCE(SUM(weight_attempted) FILTER (WHERE outcome IN ('ok', 'partial')), 0)
           AS succeeded,
       COALESCE(SUM(weight_retried) FILTER (WHERE outcome IN ('ok', 'partial')), 0)
           AS recovered,
       COALESCE(SUM(weight_retried) FILTER (WHERE outcome IN ('error', 'degraded', 'rejected')), 0)
           AS exhausted,
       SUM(backoff_sum) AS backoff_total,
       SUM(attempts_sum) / NULLIF(SUM(weight_attempted), 0) AS amplification,
       SUM(weight_retried) / NULLIF(SUM(weight_attempted), 0) AS retry_ratio
FROM (
    -- include page_cells
) AS cells
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], region)
GROUP BY 1, 2
HAVING SUM(weight_attempted) > 0
ORDER BY retried DESC, attempted DESC, tool, region
LIMIT 1000;
