-- How many rows came in each hour, of those that came before a time; the oldest hour first.
WITH arrived AS (
    SELECT received_at AS t FROM tool_calls
    UNION ALL SELECT received_at FROM attempt_rows
    UNION ALL SELECT received_at FROM breaker_transitions
    UNION ALL SELECT received_at FROM heartbeats
    UNION ALL SELECT received_at FROM spans
    UNION ALL SELECT received_at FROM sightings
    UNION ALL SELECT time FROM alert_events
)
SELECT date_trunc('hour', t) AS hour, COUNT(*) AS row_count
FROM arrived
WHERE t < $before::TIMESTAMP
GROUP BY hour
ORDER BY hour;
