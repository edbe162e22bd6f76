-- The attempt that a call implies is computed when it is asked for, no row of its own any more: it
-- took a third of the disk and a quarter of the time of storing. It ends with its call, so that
-- windows of time pass over blocks of calls unread.

CREATE TABLE attempt_rows (
    trace_id         VARCHAR   NOT NULL,
    call_span_id     VARCHAR   NOT NULL,
    span_id          VARCHAR   NOT NULL,
    number           INTEGER   NOT NULL,    -- from 1
    "start"          TIMESTAMP NOT NULL,
    duration_seconds DOUBLE    NOT NULL,
    delay_seconds    DOUBLE    NOT NULL,    -- waited before it
    tool             VARCHAR   NOT NULL,
    region           VARCHAR,
    result           VARCHAR   NOT NULL,    -- success or failure
    error_class      VARCHAR,
    error_type       VARCHAR,
    http_status      SMALLINT,
    cost             DOUBLE,
    received_at      TIMESTAMP NOT NULL,
    "end"            TIMESTAMP,
    service          VARCHAR,
    environment      VARCHAR,
    agent            VARCHAR,
    weight           DOUBLE
);
INSERT INTO attempt_rows SELECT * FROM attempts WHERE span_id IS NOT NULL;
DROP TABLE attempts;

CREATE VIEW attempts AS
SELECT * FROM attempt_rows
UNION ALL BY NAME
SELECT
    -- include only_attempt
FROM tool_calls
WHERE TRUE
  -- include only_attempt_is_derived
;

-- Derived attempts ended before their calls so far: some of them move to another hour.
INSERT INTO dirty_spans
WITH derived AS (
    SELECT "end", @later("start", coalesce(attempt_seconds, duration_seconds)) AS was
    FROM tool_calls
    WHERE TRUE
      -- include only_attempt_is_derived
), moments AS (
    SELECT unnest(["end", was]) AS moment FROM derived
    WHERE (epoch_us("end") - 1) // 3600000000 <> (epoch_us(was) - 1) // 3600000000
)
-- include marked_spans
;
