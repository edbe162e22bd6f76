SELECT
    trace_id, call_span_id, span_id, number, "start", duration_seconds, delay_seconds, tool,
    region, result, error_class, error_type, http_status, cost
FROM attempts
WHERE ($since::TIMESTAMP IS NULL
       OR "end" > $since::TIMESTAMP)
  AND ($until::TIMESTAMP IS NULL
       OR "end" <= $until::TIMESTAMP)
ORDER BY "start", trace_id, call_span_id, number;
