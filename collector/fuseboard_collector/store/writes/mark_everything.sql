INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM tool_calls
    UNION ALL SELECT "end" FROM attempt_rows
    UNION ALL SELECT time FROM breaker_transitions
    UNION ALL SELECT time FROM heartbeats
)
-- include marked_spans
;
