-- What calls of tools that report a cost have cost, in their own unit: in all, of failed attempts (that
-- ended in the window; one that was cancelled, abandoned or interrupted has no error class and did not
-- fail), and of calls that failed or were degraded in the end. The cost per success is that of calls
-- that tell it: others of the tool say nothing of what a success costs.
-- Parameters: since, until, tools, regions.
WITH priced AS (
    SELECT tool AS called, SUM(weight * cost) AS spent,
           SUM(CASE WHEN outcome = 'degraded' THEN weight * cost ELSE 0 END) AS spent_degraded,
           SUM(CASE WHEN outcome IN ('error', 'rejected') THEN weight * cost ELSE 0 END)
               AS spent_in_vain,
           SUM(CASE WHEN outcome IN ('ok', 'partial') THEN weight ELSE 0 END) AS n_priced_successes
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND cost IS NOT NULL
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
    GROUP BY 1
),
failed AS (
    SELECT tool AS tried, SUM(weight * cost) AS wasted
    FROM attempts
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND result = 'failure' AND error_class IS NOT NULL AND cost IS NOT NULL
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
    GROUP BY 1
),
counts AS (
    SELECT tool AS counted, SUM(weight) AS n_calls,
           SUM(CASE WHEN outcome IN ('ok', 'partial') THEN weight ELSE 0 END) AS n_successful
    FROM (
        -- include page_chosen_cells
    ) AS chosen
    GROUP BY 1
)
SELECT called AS tool, n_calls AS calls, n_successful AS successful, spent AS cost,
       COALESCE(wasted, 0) AS failed_cost, spent_degraded AS degraded_cost,
       spent_in_vain AS error_cost, n_priced_successes AS priced_successes,
       spent / NULLIF(n_priced_successes, 0) AS cost_per_success
FROM priced
JOIN counts ON counted = called
LEFT JOIN failed ON tried = called
ORDER BY failed_cost DESC, spent DESC, called
LIMIT 1000;
