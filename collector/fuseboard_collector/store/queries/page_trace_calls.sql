-- The calls of a trace that ended in the window: those with faults or retries first, so that a trace
-- that is cut off keeps them. Parameters: since, until, trace_id.
SELECT span_id, parent_span_id, "start", "end", duration_seconds, attempt_seconds, backoff_seconds,
       tool, COALESCE(region, 'unknown') AS region, server, upstream, service, instance,
       environment, agent, session, framework, instrumentation, outcome, error_class, error_type,
       cause_type, classifier_id, retry_strategy, http_status,
       @cut(error_message, 500) AS error_message, retryable, origin, attempts, layer,
       breaker_state, result_source, result_age_seconds, confidence, fallback_tool,
       partial_failures, cost, args_hash, call_id, weight
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND trace_id = $trace_id::VARCHAR
ORDER BY CASE WHEN error_class IS NULL AND outcome NOT IN ('error', 'rejected') AND attempts < 2
              THEN 1 ELSE 0 END,
         "start", "end", span_id
LIMIT 1000;
