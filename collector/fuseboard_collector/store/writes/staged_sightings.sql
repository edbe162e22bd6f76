-- What foreign spans say of the traces that are due; of repeats the first to arrive comes first.
SELECT sightings.* REPLACE (epoch_us("start") AS "start", epoch_us(received_at) AS received_at)
FROM sightings
JOIN due USING (trace_id)
WHERE sightings.received_at >= $since::TIMESTAMP AND sightings.received_at >= due.since
ORDER BY sightings.received_at;
