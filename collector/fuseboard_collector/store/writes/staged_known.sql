-- Traces whose foreign spans are still here, the most recently active first.
SELECT trace_id, epoch_us(min(received_at)) AS since, epoch_us(max(received_at)) AS last,
       count(*) AS sightings
FROM sightings
WHERE received_at >= $since::TIMESTAMP
GROUP BY trace_id
ORDER BY last DESC
LIMIT $most::BIGINT;
