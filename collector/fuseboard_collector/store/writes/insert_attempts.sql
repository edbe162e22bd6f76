INSERT INTO attempt_rows BY NAME
SELECT *, @later("start", duration_seconds) AS "end" FROM incoming;

INSERT INTO dirty_spans
WITH moments AS (
    SELECT @later("start", duration_seconds) AS moment FROM incoming
)
-- include marked_spans
;
