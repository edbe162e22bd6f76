-- How far one upstream reaches, beside all calls. Parameters: since, until, tools, classes, regions,
-- upstream.
SELECT COUNT(DISTINCT CASE WHEN upstream = $upstream::VARCHAR THEN tool END) AS tools,
       COUNT(DISTINCT CASE WHEN upstream = $upstream::VARCHAR
                           THEN COALESCE(agent, service) END) AS callers,
       COUNT(DISTINCT CASE WHEN upstream = $upstream::VARCHAR THEN session END) AS sessions,
       COUNT(DISTINCT CASE WHEN upstream = $upstream::VARCHAR AND error_weight > 0
                           THEN session END) AS failing_sessions,
       COALESCE(SUM(CASE WHEN upstream = $upstream::VARCHAR THEN weight ELSE 0 END), 0) AS calls,
       COALESCE(SUM(CASE WHEN upstream = $upstream::VARCHAR THEN judged_weight ELSE 0 END), 0)
           AS judged,
       COALESCE(SUM(CASE WHEN upstream = $upstream::VARCHAR THEN error_weight ELSE 0 END), 0)
           AS errors,
       COALESCE(SUM(weight), 0) AS all_calls,
       COALESCE(SUM(error_weight), 0) AS all_errors
FROM (
    -- include page_judged_rows
) AS judged_rows;
