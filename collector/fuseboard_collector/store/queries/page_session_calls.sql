-- The newest calls of a session that ended in the window. Parameters: since, until, session.
SELECT "start", "end", duration_seconds, tool, COALESCE(region, 'unknown') AS region, agent, service,
       environment, outcome, error_class, error_type, http_status,
       @cut(error_message, 200) AS error_message, attempts, backoff_seconds, layer, cost, args_hash,
       result_source, trace_id, span_id
FROM tool_calls
WHERE "end" > $since::TIMESTAMP AND "end" <= $until::TIMESTAMP
  AND session = $session::VARCHAR
ORDER BY "start" DESC, "end" DESC, span_id
LIMIT 1000;
