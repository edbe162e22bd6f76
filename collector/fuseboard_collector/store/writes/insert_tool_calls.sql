INSERT INTO tool_calls BY NAME
SELECT * REPLACE (attributes::JSON::VARIANT AS attributes) FROM incoming;

-- A call whose only attempt did not fail sends no attempt span; its row is derived, so that the
-- latency of attempts is not biased towards failures and every physical attempt has one row.
-- Whether it is derived must follow from the call alone: the attempt's span, where there is one,
-- may come in another batch. An attempt that was cut short (cancelled, left, interrupted) did not
-- succeed, but has no error class. A call that was cut short during back-off or in its fallback
-- had failed before, and that attempt has a span.
INSERT INTO attempts BY NAME
SELECT
    -- include only_attempt
FROM incoming
WHERE TRUE
  -- include only_attempt_is_derived
;

INSERT INTO dirty_spans
WITH moments AS (
    SELECT "end" AS moment FROM incoming
    UNION ALL
    SELECT @later("start", coalesce(attempt_seconds, duration_seconds)) FROM incoming
)
-- include marked_spans
;
