-- What each breaker did to calls of the window: those it turned away, which were rejected, answered
-- by a stand-in (degraded) or cut short between two attempts (stopped), whom they belonged to, and
-- the calls that it let through to probe. sessions and agents are numbers of different ones, agent
-- their names. words: what the newest call that was turned away was told, which says when the next
-- probe is due. Parameters: since, until, tools, regions.
WITH touched AS (
    SELECT tool, region, upstream, session, agent, instance, outcome, weight, "end", error_message,
           trace_id, 0 AS is_probe
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND classifier_id = 'circuit_open'
    UNION ALL
    -- Both conditions in one would keep the engine from passing rows over by what blocks hold.
    SELECT tool, region, upstream, NULL, NULL, NULL, outcome, weight, "end", NULL, trace_id, 1
    FROM tool_calls
    WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND breaker_state = 'half_open' AND attempts > 0
)
SELECT tool || COALESCE('/' || region, '') || COALESCE('/' || upstream, '') AS breaker, tool,
       COALESCE(region, 'unknown') AS place,
       SUM(CASE WHEN is_probe = 0 THEN weight ELSE 0 END) AS turned_away,
       SUM(CASE WHEN is_probe = 0 AND outcome = 'rejected' THEN weight ELSE 0 END) AS rejected,
       SUM(CASE WHEN is_probe = 0 AND outcome = 'degraded' THEN weight ELSE 0 END) AS degraded,
       SUM(CASE WHEN is_probe = 0 AND outcome = 'error' THEN weight ELSE 0 END) AS stopped,
       COUNT(DISTINCT session) AS sessions, COUNT(DISTINCT agent) AS agents,
       @cut(@joined(agent), 300) AS agent, COUNT(DISTINCT instance) AS processes,
       MAX(CASE WHEN is_probe = 0 THEN "end" END) AS last_turned_away,
       @item(@newest((error_message, trace_id), (1 - is_probe, "end", trace_id)), 1) AS words,
       @item(@newest((error_message, trace_id), (1 - is_probe, "end", trace_id)), 2) AS trace_id,
       COUNT(CASE WHEN is_probe = 1 THEN 1 END) AS probes,
       MAX(CASE WHEN is_probe = 1 THEN "end" END) AS last_probe,
       @item(@newest((outcome, trace_id), (is_probe, "end", trace_id)), 1) AS probe_outcome,
       @item(@newest((outcome, trace_id), (is_probe, "end", trace_id)), 2) AS probe_trace_id
FROM touched
WHERE @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
GROUP BY tool, region, upstream
ORDER BY turned_away DESC, breaker
LIMIT 1000;
