-- The keys of what arrived since; a bound time, so that blocks of older rows are passed over.
SELECT trace_id || span_id AS ids FROM tool_calls WHERE received_at >= $since::TIMESTAMP
UNION ALL
SELECT trace_id || span_id FROM attempt_rows WHERE received_at >= $since::TIMESTAMP
UNION ALL
SELECT trace_id || span_id FROM spans WHERE received_at >= $since::TIMESTAMP
UNION ALL
SELECT trace_id || span_id FROM sightings WHERE received_at >= $since::TIMESTAMP;
