INSERT INTO tool_calls BY NAME
SELECT * REPLACE (attributes::JSON::VARIANT AS attributes),
       @step(duration_seconds, 8) AS step, @args_key(args_hash) AS args_key
FROM incoming;

INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM incoming
)
-- include marked_spans
;
