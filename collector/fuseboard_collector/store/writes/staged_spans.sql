-- Context that the foreign spans in `seen` were taken for before.
SELECT * REPLACE (NULL::VARCHAR AS attributes, epoch_us("start") AS "start",
                  epoch_us(received_at) AS received_at)
FROM spans
WHERE received_at >= $since::TIMESTAMP
  AND (trace_id, span_id) IN (SELECT trace_id, span_id FROM seen);
