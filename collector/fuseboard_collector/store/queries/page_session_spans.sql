-- The newest spans of models in a session that began in the window and tell of tokens: those that name
-- the session, and those of its traces. Parameters: since, until, session, traces.
SELECT "start", duration_seconds, name, operation, agent, input_tokens, output_tokens, trace_id,
       span_id, parent_span_id
FROM spans
WHERE "start" > $since::TIMESTAMP AND "start" <= $until::TIMESTAMP
  AND (input_tokens IS NOT NULL OR output_tokens IS NOT NULL)
  AND (session = $session::VARCHAR
       OR session IS NULL AND @among($traces::VARCHAR[], trace_id))
ORDER BY "start" DESC, span_id
LIMIT 1000;
