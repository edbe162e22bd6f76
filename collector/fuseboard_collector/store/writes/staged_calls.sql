-- Calls stored of the traces that are due: our own, and what they were assembled to before.
SELECT *
    REPLACE (NULL::VARCHAR AS attributes, epoch_us("start") AS "start", epoch_us("end") AS "end",
             epoch_us(received_at) AS received_at)
FROM tool_calls
SEMI JOIN due USING (trace_id)
WHERE received_at >= $since::TIMESTAMP
ORDER BY tool_calls.received_at DESC
LIMIT $most::BIGINT;
