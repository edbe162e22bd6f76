-- Alert instances that are not at rest at the end of the window: newest row of each instance.
-- Parameters: until.
WITH newest AS (
    SELECT time, alert, severity, labels::VARCHAR AS labels, state, active_at, fired_at, value, peak,
           row_number() OVER (PARTITION BY alert, severity, labels::VARCHAR
                              ORDER BY time DESC) AS place
    FROM alert_events
    WHERE time <= $until::TIMESTAMP
)
SELECT time, alert, severity, labels, state, active_at, fired_at, value, peak
FROM newest
WHERE place = 1 AND state IN ('firing', 'pending', 'no_data')
ORDER BY CASE state WHEN 'firing' THEN 0 WHEN 'no_data' THEN 1 ELSE 2 END,
         CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
         active_at, alert, labels
LIMIT 1000;
