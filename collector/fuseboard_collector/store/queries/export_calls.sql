SELECT
    trace_id, span_id, "start", "end", received_at, duration_seconds, attempt_seconds, tool,
    server, region, environment, service, instance, agent, session, framework, outcome,
    error_class, error_type, cause_type, classifier_id, retry_strategy, http_status,
    error_message, retryable, origin, attempts, backoff_seconds, layer, breaker_state,
    result_source, result_age_seconds, confidence, fallback_tool, partial_failures, cost,
    args_hash, upstream, call_id, weight
FROM tool_calls
WHERE ($since::TIMESTAMP IS NULL OR "end" > $since::TIMESTAMP)
  AND ($until::TIMESTAMP IS NULL OR "end" <= $until::TIMESTAMP)
ORDER BY "end", trace_id, span_id;
