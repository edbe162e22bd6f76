SELECT
    time, breaker, tool, region, upstream, service, instance, environment, from_state, to_state,
    reason, failure_ratio, calls, failures, error_class, trace_id
FROM breaker_transitions
WHERE ($since::TIMESTAMP IS NULL OR time > $since::TIMESTAMP)
  AND ($until::TIMESTAMP IS NULL OR time <= $until::TIMESTAMP)
ORDER BY time, breaker, instance;
