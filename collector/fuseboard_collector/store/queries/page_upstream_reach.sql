-- How far one upstream reaches. Parameters: since, until, tools, classes, regions, upstream.
SELECT COUNT(DISTINCT tool) AS tools, COUNT(DISTINCT COALESCE(agent, service)) AS callers,
       COUNT(DISTINCT session) AS sessions,
       COUNT(DISTINCT CASE WHEN error_weight > 0 THEN session END) AS failing_sessions,
       COALESCE(SUM(weight), 0) AS calls, COALESCE(SUM(judged_weight), 0) AS judged,
       COALESCE(SUM(error_weight), 0) AS errors
FROM (
    -- include page_judged_rows
) AS judged_rows
WHERE upstream = $upstream::VARCHAR;
