SELECT time_bucket(INTERVAL 6 HOUR, span) AS span, environment, agent, tool, region, error_class, step,
       SUM(weight) AS weight
FROM durations_h
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY 1, tool;
