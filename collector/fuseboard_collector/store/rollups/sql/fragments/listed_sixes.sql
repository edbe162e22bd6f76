SELECT time_bucket(INTERVAL 6 HOUR, span) AS span, tool, region, step,
       SUM(weight) AS weight, flatten(list(lengths)) AS lengths
FROM @these
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY ALL
ORDER BY span, tool, region, step
