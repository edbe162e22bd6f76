-- One mute as its newest row has it, whether it goes on or has ended. Parameters: id.
SELECT id, alert, severity, tool, region, begins, ends, reason, author, set_at
FROM mutes
WHERE id = $id::VARCHAR
ORDER BY set_at DESC
LIMIT 1;
