SELECT
    trace_id, call_span_id, span_id, number, "start", duration_seconds, delay_seconds, tool,
    region, result, error_class, error_type, http_status, cost
FROM attempts
WHERE ($since::TIMESTAMP IS NULL
       OR @later("start", duration_seconds) > $since::TIMESTAMP)
  AND ($until::TIMESTAMP IS NULL
       OR @later("start", duration_seconds) <= $until::TIMESTAMP)
ORDER BY "start", trace_id, call_span_id, number;
