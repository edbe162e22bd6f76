-- Who calls which tool at which upstream: of agents (services where no agent is known), worst first.
-- classes narrows errors. Parameters: since, until, tools, classes, regions.
SELECT COALESCE(agent, service) AS caller, tool, upstream, SUM(weight) AS calls,
       SUM(judged_weight) AS judged, SUM(error_weight) AS errors,
       SUM(CASE WHEN outcome = 'degraded' THEN weight ELSE 0 END) AS degraded,
       MAX("end") AS last_end
FROM (
    -- include page_judged_rows
) AS judged_rows
GROUP BY 1, 2, 3
ORDER BY errors DESC, calls DESC, 1, 2, 3
LIMIT 20000;
