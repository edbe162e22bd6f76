SELECT time_bucket(INTERVAL 1 DAY, span) AS span, instance, MIN(first_start) AS first_start,
       MAX(last_end) AS last_end
FROM callers_h
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY 1, 2;
