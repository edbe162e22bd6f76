INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM tool_calls
    UNION ALL SELECT "end" FROM attempts
    UNION ALL SELECT time FROM heartbeats
)
-- include marked_spans
;
