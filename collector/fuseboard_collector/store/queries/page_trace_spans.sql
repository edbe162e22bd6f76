-- The spans around the calls of a trace that began in the window: of agents and models first, then
-- the longest, so that a trace that is cut off keeps them. Parameters: since, until, trace_id.
SELECT span_id, parent_span_id, name, kind, "start", duration_seconds, service, status, agent,
       session, operation, http_status, input_tokens, output_tokens
FROM spans
WHERE "start" > $since::TIMESTAMP AND "start" <= $until::TIMESTAMP
  AND trace_id = $trace_id::VARCHAR
ORDER BY CASE WHEN operation IS NULL THEN 1 ELSE 0 END, duration_seconds DESC, "start", span_id
LIMIT 1000;
