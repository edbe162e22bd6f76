-- The agents that called in sessions in the window, busiest first. Parameters: since, until.
SELECT agent, SUM(weight) AS calls
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND session IS NOT NULL AND agent IS NOT NULL
GROUP BY 1
ORDER BY calls DESC, agent
LIMIT 100;
