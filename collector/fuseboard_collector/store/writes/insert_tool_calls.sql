INSERT INTO tool_calls BY NAME
SELECT * REPLACE (attributes::JSON::VARIANT AS attributes) FROM incoming;

INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM incoming
)
-- include marked_spans
;
