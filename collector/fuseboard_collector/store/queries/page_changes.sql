-- Calls of the window and of the one before, by all that may tell why something changed; the finest
-- slices, of which readers add up coarser ones. Arguments are told apart where they failed, were
-- retried or slow at least twice in the window (the 400 that did most often); NULL stands for all
-- others. Slow: longer than 19 of 20 calls of the tool took in the window before.
-- Parameters: since, until, before_since, before_until, tools, regions.
WITH chosen AS (
    SELECT CASE WHEN "end" > $since::TIMESTAMP THEN 1 ELSE 0 END AS is_now, tool,
           COALESCE(region, 'unknown') AS region, agent, service, upstream, args_hash, outcome,
           error_class, duration_seconds, weight,
           CASE WHEN outcome IN ('error', 'rejected')
                     AND COALESCE(error_class, 'unclassified') <> 'L1_input'
                THEN 1 ELSE 0 END AS is_error,
           CASE WHEN attempts >= 1 THEN 1 ELSE 0 END AS is_attempted,
           CASE WHEN attempts >= 2 THEN 1 ELSE 0 END AS is_retried
    FROM tool_calls
    WHERE ("end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
           OR "end" > $before_since::TIMESTAMP AND "end" <= $before_until::TIMESTAMP)
      -- Said again without OR, which keeps the rest of the table from being passed over unread.
      AND "end" > $before_since::TIMESTAMP AND "end" <= $until::TIMESTAMP
      AND @among($tools::VARCHAR[], tool)
      AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
),
lines AS (
    SELECT tool AS lined_tool, @quantiles(duration_seconds)[2] AS slow_line
    FROM chosen
    WHERE is_now = 0
    GROUP BY tool
),
measured AS (
    SELECT chosen.*, CASE WHEN duration_seconds > slow_line THEN 1 ELSE 0 END AS is_slow
    FROM chosen
    LEFT JOIN lines ON lines.lined_tool = chosen.tool
),
suspects AS (
    SELECT tool AS suspect_tool, args_hash AS suspect, COUNT(*) AS times
    FROM measured
    WHERE is_now = 1 AND args_hash IS NOT NULL AND is_error + is_retried + is_slow > 0
    GROUP BY 1, 2
    HAVING COUNT(*) >= 2
    ORDER BY times DESC, suspect_tool, suspect
    LIMIT 400
)
SELECT tool, region, agent, service, upstream, suspect AS args_hash,
       CASE WHEN is_error = 1 THEN COALESCE(error_class, 'unclassified') END AS error_class,
       SUM(weight * is_now) AS calls,
       SUM(weight * (1 - is_now)) AS calls_before,
       SUM(CASE WHEN outcome NOT IN ('cancelled', 'abandoned', 'interrupted')
                THEN weight * is_now ELSE 0 END) AS judged,
       SUM(CASE WHEN outcome NOT IN ('cancelled', 'abandoned', 'interrupted')
                THEN weight * (1 - is_now) ELSE 0 END) AS judged_before,
       SUM(weight * is_now * is_error) AS errors,
       SUM(weight * (1 - is_now) * is_error) AS errors_before,
       SUM(weight * is_now * is_attempted) AS attempted,
       SUM(weight * (1 - is_now) * is_attempted) AS attempted_before,
       SUM(weight * is_now * is_retried) AS retried,
       SUM(weight * (1 - is_now) * is_retried) AS retried_before,
       SUM(weight * is_now * is_slow) AS slow,
       SUM(weight * (1 - is_now) * is_slow) AS slow_before
FROM measured
LEFT JOIN suspects ON suspects.suspect_tool = measured.tool AND suspects.suspect = measured.args_hash
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY errors + retried + slow DESC, calls DESC, tool, region, 3, 4, 5, 6, 7
LIMIT 100000;
