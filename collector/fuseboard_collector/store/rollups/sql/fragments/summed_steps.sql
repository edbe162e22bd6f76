       SUM(weight) AS weight
FROM @these
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY span, tool, region, error_class, step
