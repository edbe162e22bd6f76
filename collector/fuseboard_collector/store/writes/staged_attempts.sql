-- Attempts of calls of the foreign spans in `seen`.
SELECT * REPLACE (epoch_us("start") AS "start", epoch_us(received_at) AS received_at)
FROM attempt_rows
WHERE received_at >= $since::TIMESTAMP
  AND (trace_id, call_span_id) IN (SELECT trace_id, span_id FROM seen);
