SELECT time_bucket(INTERVAL 1 DAY, time - INTERVAL 1 MICROSECOND) AS span, breaker, tool,
       COALESCE(region, 'unknown') AS region, upstream, COALESCE(instance, '') AS instance, time,
       received_at, from_state, to_state, reason, failure_ratio, error_class
FROM breaker_transitions
WHERE time > $since::TIMESTAMP AND time <= $until::TIMESTAMP
