-- What each breaker did in the window, the one that opened most often first. moves = transitions.
-- Parameters: since, until, tools, regions.
SELECT breaker, tool, COALESCE(region, 'unknown') AS region, COUNT(*) AS moves,
       COUNT(*) FILTER (WHERE to_state IN ('open', 'isolated')) AS openings,
       MIN(time) AS first_time, MAX(time) AS last_time,
       MIN(CASE WHEN to_state IN ('open', 'isolated') THEN time END) AS first_opened,
       COUNT(DISTINCT instance) AS processes
FROM breaker_transitions
WHERE time > $since::TIMESTAMP AND time <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
GROUP BY 1, 2, 3
ORDER BY openings DESC, moves DESC, breaker, tool, 3
LIMIT 300;
