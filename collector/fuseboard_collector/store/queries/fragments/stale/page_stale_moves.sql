UNION ALL
SELECT time, breaker, tool, region, upstream, instance, from_state, to_state, reason, failure_ratio,
       error_class, received_at
FROM breaker_transitions
WHERE time > $stale_day_since::TIMESTAMP AND time <= $stale_day_until::TIMESTAMP
  AND list_contains($stale_days::TIMESTAMP[],
                    time_bucket(INTERVAL 1 DAY, time - INTERVAL 1 MICROSECOND))
