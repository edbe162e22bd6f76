       SUM(weight) AS weight, MAX(last_end) AS last_end
FROM @these
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY span, tool, region
