SELECT time_bucket(INTERVAL 1 HOUR, time - INTERVAL 1 MICROSECOND) AS span,
       instance, MIN(time) AS first_beat, MAX(time) AS last_beat,
       @newest(service, time) AS service,
       @newest(breakers, time) AS breakers,
       @newest(calls_in_flight, time) AS running
FROM heartbeats
WHERE time > $since::TIMESTAMP AND time <= $until::TIMESTAMP
GROUP BY 1, 2;
