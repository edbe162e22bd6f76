INSERT INTO breaker_transitions BY NAME SELECT * FROM incoming;

INSERT INTO dirty_spans
WITH moments AS (
    SELECT time AS moment FROM incoming
)
-- include marked_spans
;
