-- 1 if nothing was received in (since, until], else 0; no row before anything ever was.
-- By the time of receipt: an agent's wrong clock must neither raise nor hide this alert.
WITH newest AS (
    SELECT max(received_at) AS received_at
    FROM (
        SELECT max(received_at) AS received_at FROM heartbeats
        WHERE received_at <= $until::TIMESTAMP
        UNION ALL
        SELECT max(received_at) AS received_at FROM tool_calls
        WHERE received_at <= $until::TIMESTAMP
    )
)
SELECT
    CASE WHEN received_at > $since::TIMESTAMP THEN 0 ELSE 1 END::DOUBLE AS value,
    received_at AS newest
FROM newest
WHERE received_at IS NOT NULL
