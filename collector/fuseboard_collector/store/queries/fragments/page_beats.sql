-- Of every process that ever sent one.
SELECT instance, MIN(time) AS first_beat, MAX(time) AS last_beat,
       @newest(service, time) AS last_service,
       @newest(breakers, time) AS breakers,
       @newest(calls_in_flight, time) AS running
FROM heartbeats
WHERE time <= $until::TIMESTAMP
GROUP BY instance
