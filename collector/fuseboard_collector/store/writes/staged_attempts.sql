-- Attempts that have spans; those that are derived from a call follow it without more ado.
SELECT * REPLACE (epoch_us("start") AS "start", epoch_us(received_at) AS received_at)
FROM attempts
SEMI JOIN due USING (trace_id)
WHERE received_at >= $since::TIMESTAMP AND span_id IS NOT NULL
ORDER BY attempts.received_at DESC
LIMIT $most::BIGINT;
