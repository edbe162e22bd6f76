SELECT time_bucket(INTERVAL 1 DAY, span) AS span, instance, MIN(first_beat) AS first_beat,
       MAX(last_beat) AS last_beat,
       @newest(service, last_beat) AS service,
       @newest(breakers, last_beat) AS breakers,
       @newest(running, last_beat) AS running
FROM beats_h
WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP
GROUP BY 1, 2;
