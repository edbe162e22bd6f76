SELECT time, breaker, tool, region, upstream, instance, from_state, to_state, reason, failure_ratio,
       error_class, received_at
FROM breaker_transitions
WHERE time <= $until::TIMESTAMP
