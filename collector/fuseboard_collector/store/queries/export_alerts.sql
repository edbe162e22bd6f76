SELECT alert, severity, labels, state, active_at, fired_at, resolved_at, value
FROM alert_events
WHERE ($since::TIMESTAMP IS NULL OR time > $since::TIMESTAMP)
  AND ($until::TIMESTAMP IS NULL OR time <= $until::TIMESTAMP)
ORDER BY time, alert, labels;
