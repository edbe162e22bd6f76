-- What a client may resend after a crash: the last ten minutes before the newest row, however
-- long ago that was.
WITH received AS (
    SELECT received_at FROM tool_calls
    UNION ALL SELECT received_at FROM attempt_rows
    UNION ALL SELECT received_at FROM spans
    UNION ALL SELECT received_at FROM sightings
), since AS (
    SELECT max(received_at) - to_seconds($window::DOUBLE) AS t FROM received
)
SELECT trace_id || span_id AS ids FROM tool_calls, since WHERE received_at >= t
UNION ALL
SELECT trace_id || span_id FROM attempt_rows, since WHERE received_at >= t
UNION ALL
SELECT trace_id || span_id FROM spans, since WHERE received_at >= t
UNION ALL
SELECT trace_id || span_id FROM sightings, since WHERE received_at >= t;
