-- The breakers that a call of a trace made change, in the window.
-- Parameters: since, until, trace_id.
SELECT time, breaker, tool, COALESCE(region, 'unknown') AS region, upstream, service, instance,
       from_state, to_state, reason, failure_ratio, calls, failures, error_class, span_id
FROM breaker_transitions
WHERE time > $since::TIMESTAMP AND time <= $until::TIMESTAMP
  AND trace_id = $trace_id::VARCHAR
ORDER BY time, breaker, received_at
LIMIT 1000;
