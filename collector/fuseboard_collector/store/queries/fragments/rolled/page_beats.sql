-- Of every process that ever sent one: by day, by the hour where days are not rolled up, and one by
-- one where hours are not.
SELECT instance, MIN(first_beat) AS first_beat, MAX(last_beat) AS last_beat,
       @newest(service, last_beat) AS last_service,
       @newest(breakers, last_beat) AS breakers,
       @newest(running, last_beat) AS running
FROM (SELECT instance, first_beat, last_beat, service, breakers, running
      FROM beats_d
      WHERE span < $last_day::TIMESTAMP AND NOT list_contains($dirty_days::TIMESTAMP[], span)
      UNION ALL
      SELECT instance, first_beat, last_beat, service, breakers, running
      FROM beats_h
      WHERE span >= $dirty_day_since::TIMESTAMP AND span < $last_hour::TIMESTAMP
        AND (span >= $last_day::TIMESTAMP
             OR list_contains($dirty_days::TIMESTAMP[], time_bucket(INTERVAL 1 DAY, span)))
        AND NOT list_contains($stale_hours::TIMESTAMP[], span)
      UNION ALL
      SELECT instance, time, time, service, breakers, calls_in_flight
      FROM heartbeats
      WHERE time > $last_hour::TIMESTAMP AND time <= $until::TIMESTAMP
      UNION ALL
      SELECT instance, time, time, service, breakers, calls_in_flight
      FROM heartbeats
      WHERE time > $stale_since::TIMESTAMP AND time <= $last_hour::TIMESTAMP
        AND list_contains($stale_hours::TIMESTAMP[],
                          time_bucket(INTERVAL 1 HOUR, time - INTERVAL 1 MICROSECOND))) AS known
GROUP BY instance
