-- What an incident touched: calls that spent a budget, by outcome, and whose they were. cost is that
-- of those that tell one (priced), NULL if none does. Parameters: since, until, tools, regions.
SELECT COALESCE(SUM(weight), 0) AS affected,
       COALESCE(SUM(weight) FILTER (WHERE outcome = 'error'), 0) AS errors,
       COALESCE(SUM(weight) FILTER (WHERE outcome = 'rejected'), 0) AS rejected,
       COALESCE(SUM(weight) FILTER (WHERE outcome = 'degraded'), 0) AS degraded,
       COALESCE(SUM(weight) FILTER (WHERE outcome IN ('partial', 'ok')), 0) AS unusable,
       COUNT(DISTINCT session) AS sessions, COUNT(DISTINCT agent) AS agents,
       COUNT(DISTINCT tool) AS tools,
       COALESCE(SUM(weight) FILTER (WHERE cost IS NOT NULL), 0) AS priced,
       CASE WHEN COUNT(cost) = 0 THEN NULL ELSE SUM(weight * cost) END AS cost_of_these
FROM (SELECT *, error_class AS class_of_call
      FROM tool_calls
      -- include page_spending_calls
     ) AS spending
-- include page_spends
LIMIT 1;
