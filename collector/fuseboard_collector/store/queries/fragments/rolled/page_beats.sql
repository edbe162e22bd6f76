-- Of every process that ever sent one: by the hour, and one by one where hours are not rolled up.
SELECT instance, MIN(first_beat) AS first_beat, MAX(last_beat) AS last_beat,
       @newest(service, last_beat) AS last_service,
       @newest(breakers, last_beat) AS breakers,
       @newest(running, last_beat) AS running
FROM (SELECT instance, first_beat, last_beat, service, breakers, running
      FROM beats_h
      WHERE span < $last_hour::TIMESTAMP
        AND span NOT IN (SELECT span FROM dirty_spans WHERE hours = 1)
      UNION ALL
      SELECT instance, time, time, service, breakers, calls_in_flight
      FROM heartbeats
      WHERE time > $last_hour::TIMESTAMP AND time <= $until::TIMESTAMP
      UNION ALL
      SELECT instance, time, time, service, breakers, calls_in_flight
      FROM heartbeats
      WHERE time > $stale_since::TIMESTAMP AND time <= $last_hour::TIMESTAMP
        AND time_bucket(INTERVAL 1 HOUR, time - INTERVAL 1 MICROSECOND)
            IN (SELECT span FROM dirty_spans WHERE hours = 1)) AS known
GROUP BY instance
