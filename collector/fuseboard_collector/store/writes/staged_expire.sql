-- No relative of these is expected any more; calls assembled from them stay.
DELETE FROM sightings
WHERE received_at < $before::TIMESTAMP
  AND trace_id NOT IN (SELECT trace_id FROM staged_traces);
