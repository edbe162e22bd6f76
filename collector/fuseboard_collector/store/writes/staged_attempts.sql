-- Attempts of calls of the foreign spans in `seen`; one that is derived from its call follows it.
SELECT * REPLACE (epoch_us("start") AS "start", epoch_us(received_at) AS received_at)
FROM attempts
WHERE received_at >= $since::TIMESTAMP AND span_id IS NOT NULL
  AND (trace_id, call_span_id) IN (SELECT trace_id, span_id FROM seen);
