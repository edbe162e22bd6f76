SELECT time_bucket(INTERVAL 1 DAY, span) AS span, tool, region, error_class, number,
       SUM(weight) AS weight
FROM failed_attempts_6h
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY span, tool, region;
