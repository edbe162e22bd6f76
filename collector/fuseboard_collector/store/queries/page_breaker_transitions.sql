-- The transitions in the window, newest first.
-- Parameters: since, until, tools, regions.
SELECT time, breaker, tool, COALESCE(region, 'unknown') AS region, upstream, service, instance,
       from_state, to_state, reason, failure_ratio, calls, failures, error_class, trace_id
FROM breaker_transitions
WHERE time > $since::TIMESTAMP AND time <= $until::TIMESTAMP
  AND @among($tools::VARCHAR[], tool)
  AND @among($regions::VARCHAR[], COALESCE(region, 'unknown'))
ORDER BY time DESC, breaker, received_at DESC
LIMIT 1000;
