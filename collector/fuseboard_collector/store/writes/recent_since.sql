-- When what a client may resend after a crash began to arrive: ten minutes before the newest row,
-- however long ago that was. The last in order is found without reading the rest.
WITH newest AS (
    (SELECT received_at FROM tool_calls ORDER BY received_at DESC LIMIT 1)
    UNION ALL (SELECT received_at FROM attempt_rows ORDER BY received_at DESC LIMIT 1)
    UNION ALL (SELECT received_at FROM spans ORDER BY received_at DESC LIMIT 1)
    UNION ALL (SELECT received_at FROM sightings ORDER BY received_at DESC LIMIT 1)
)
SELECT max(received_at) - to_seconds($window::DOUBLE) FROM newest;
