-- Who muted which alert in the window, and who took that back (ends is set_at then), oldest first.
-- Parameters: since, until.
SELECT set_at AS time, alert, severity, tool, region, ends, reason, author
FROM mutes
WHERE set_at > $since::TIMESTAMP AND set_at <= $until::TIMESTAMP
ORDER BY set_at, id
LIMIT 300;
