-- Of each tool, region and class the calls that spent a budget, with the first and the last of them;
-- the most first. Parameters: since, until, tools, regions.
SELECT tool, region_name AS region, COALESCE(class_of_call, 'unclassified') AS error_class,
       SUM(weight) AS bad,
       COALESCE(SUM(weight) FILTER (WHERE outcome IN ('error', 'rejected')), 0) AS errors,
       COALESCE(SUM(weight) FILTER (WHERE outcome = 'degraded'), 0) AS degraded,
       MIN("end") AS first_bad, MAX("end") AS last_bad,
       MIN(CASE WHEN outcome = 'degraded' THEN "end" END) AS first_degraded
FROM (SELECT *, error_class AS class_of_call, COALESCE(region, 'unknown') AS region_name
      FROM tool_calls
      -- include page_spending_calls
     ) AS spending
-- include page_spends
GROUP BY 1, 2, 3
ORDER BY bad DESC, tool, 2, 3
LIMIT 100;
