SELECT *
    REPLACE (NULL::VARCHAR AS attributes, epoch_us("start") AS "start", epoch_us(received_at) AS received_at)
FROM spans
SEMI JOIN due USING (trace_id)
WHERE received_at >= $since::TIMESTAMP
ORDER BY spans.received_at DESC
LIMIT $most::BIGINT;
