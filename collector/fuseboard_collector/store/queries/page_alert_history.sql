-- State changes of alert instances in the window, newest first. Parameters: since, until.
SELECT time, alert, severity, labels::VARCHAR AS labels, state, active_at, fired_at, resolved_at,
       value, peak
FROM alert_events
WHERE time > $since::TIMESTAMP AND time <= $until::TIMESTAMP
ORDER BY time DESC, alert, labels::VARCHAR
LIMIT 1000;
