SELECT * FROM breaker_transitions
WHERE time > $last_day::TIMESTAMP AND time <= $until::TIMESTAMP
UNION ALL
SELECT * FROM breaker_transitions
WHERE time > $cut_since::TIMESTAMP AND time <= $cut_until::TIMESTAMP
UNION ALL
SELECT * FROM breaker_transitions
WHERE time > $stale_day_since::TIMESTAMP AND time <= $stale_day_until::TIMESTAMP
  AND list_contains($stale_days::TIMESTAMP[],
                    time_bucket(INTERVAL 1 DAY, time - INTERVAL 1 MICROSECOND))
