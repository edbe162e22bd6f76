-- What depends on one upstream: its tools by region, with the sessions and callers that they have, and
-- what has stood in for their answers. Parameters: since, until, tools, classes, regions, upstream.
SELECT tool, place AS region, SUM(weight) AS calls, SUM(judged_weight) AS judged,
       SUM(error_weight) AS errors,
       SUM(CASE WHEN outcome = 'degraded' THEN weight ELSE 0 END) AS degraded,
       SUM(CASE WHEN outcome = 'rejected' THEN weight ELSE 0 END) AS rejected,
       COUNT(DISTINCT session) AS sessions,
       COUNT(DISTINCT CASE WHEN error_weight > 0 THEN session END) AS failing_sessions,
       @joined(fallback_tool) AS fallbacks, MAX("end") AS last_end
FROM (
    -- include page_judged_rows
) AS judged_rows
WHERE upstream = $upstream::VARCHAR
GROUP BY 1, 2
ORDER BY errors DESC, calls DESC, 1, 2
LIMIT 1000;
