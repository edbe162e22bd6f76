-- The attempts of a trace that ended in the window, those that calls imply included (without a
-- span_id). Parameters: since, until, trace_id.
SELECT call_span_id, span_id, number, "start", "end", duration_seconds, delay_seconds, result,
       error_class, error_type, http_status, cost
FROM (
    -- include page_all_attempts
) AS all_attempts
WHERE trace_id = $trace_id::VARCHAR
ORDER BY call_span_id, number, "start"
LIMIT 5000;
