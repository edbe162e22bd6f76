-- By arrival, so that old data imported today stays for the whole period.
INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM tool_calls WHERE received_at < $before::TIMESTAMP
    UNION ALL SELECT "end" FROM attempt_rows WHERE received_at < $before::TIMESTAMP
    UNION ALL SELECT time FROM breaker_transitions WHERE received_at < $before::TIMESTAMP
    UNION ALL SELECT time FROM heartbeats WHERE received_at < $before::TIMESTAMP
)
-- include marked_spans
;

DELETE FROM tool_calls WHERE received_at < $before::TIMESTAMP;
DELETE FROM attempt_rows WHERE received_at < $before::TIMESTAMP;
DELETE FROM breaker_transitions WHERE received_at < $before::TIMESTAMP;
DELETE FROM heartbeats WHERE received_at < $before::TIMESTAMP;
DELETE FROM spans WHERE received_at < $before::TIMESTAMP;
DELETE FROM sightings WHERE received_at < $before::TIMESTAMP;
DELETE FROM alert_events WHERE time < $before::TIMESTAMP;
-- Whole: without its newest row a mute would go on as it was before somebody ended it.
DELETE FROM mutes WHERE id IN (
    SELECT id FROM mutes GROUP BY id HAVING MAX(greatest(ends, set_at)) < $before::TIMESTAMP
);
