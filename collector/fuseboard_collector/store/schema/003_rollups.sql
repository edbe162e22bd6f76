-- Rollups, for windows that are too long to count rows. A span is named by its start s and holds
-- what ended in (s, s + length], as windows do. Quarters of an hour and hours are rolled up from
-- the raw rows, six hours and days from those, or from the raw rows where there is nothing finer. They
-- always equal the raw rows: whoever changes those marks their hours in the same transaction;
-- readers then look at the raw rows of these hours, and the keeper rolls them up again. No column
-- is named as what queries make of it: ClickHouse would take the one for the other.

CREATE TABLE dirty_spans (
    span       TIMESTAMP NOT NULL,
    hours      SMALLINT  NOT NULL,        -- its length: 1, 6 or 24
    is_claimed BOOLEAN   NOT NULL         -- the keeper is at it; marked again meanwhile: two rows
);

CREATE TABLE calls_15m (
    span             TIMESTAMP NOT NULL,
    framework        VARCHAR,
    instrumentation  VARCHAR,
    tool             VARCHAR   NOT NULL,
    region           VARCHAR,
    outcome          VARCHAR   NOT NULL,
    error_class      VARCHAR,
    weight           DOUBLE    NOT NULL,  -- calls; all sums are weighted
    weight_attempted DOUBLE    NOT NULL,  -- with at least one attempt
    weight_retried   DOUBLE    NOT NULL,  -- with at least two
    weight_first     DOUBLE    NOT NULL,  -- whose first attempt succeeded
    attempts_sum     DOUBLE    NOT NULL,
    attempt_sum      DOUBLE    NOT NULL,  -- seconds
    backoff_sum      DOUBLE    NOT NULL,
    duration_sum     DOUBLE    NOT NULL,
    duration_max     DOUBLE    NOT NULL,
    last_end         TIMESTAMP NOT NULL
);
CREATE TABLE calls_h AS SELECT * FROM calls_15m;
CREATE TABLE calls_6h AS SELECT * FROM calls_15m;
CREATE TABLE calls_d AS SELECT * FROM calls_15m;

-- Calls by duration: step n holds 2^(n/8) up to 2^((n+1)/8) milliseconds; below 1 ms it is negative.
CREATE TABLE durations_h (
    span   TIMESTAMP NOT NULL,
    tool   VARCHAR   NOT NULL,
    region VARCHAR,
    step   SMALLINT  NOT NULL,
    weight DOUBLE    NOT NULL
);
CREATE TABLE durations_6h AS SELECT * FROM durations_h;
CREATE TABLE durations_d AS SELECT * FROM durations_h;
CREATE TABLE attempt_durations_h AS SELECT * FROM durations_h;
CREATE TABLE attempt_durations_6h AS SELECT * FROM durations_h;
CREATE TABLE attempt_durations_d AS SELECT * FROM durations_h;

-- The same of those with a class of errors, for when classes are chosen.
CREATE TABLE fault_durations_h (
    span        TIMESTAMP NOT NULL,
    tool        VARCHAR   NOT NULL,
    region      VARCHAR,
    error_class VARCHAR   NOT NULL,
    step        SMALLINT  NOT NULL,
    weight      DOUBLE    NOT NULL
);
CREATE TABLE fault_durations_6h AS SELECT * FROM fault_durations_h;
CREATE TABLE fault_durations_d AS SELECT * FROM fault_durations_h;
CREATE TABLE fault_attempt_durations_h AS SELECT * FROM fault_durations_h;
CREATE TABLE fault_attempt_durations_6h AS SELECT * FROM fault_durations_h;
CREATE TABLE fault_attempt_durations_d AS SELECT * FROM fault_durations_h;

CREATE TABLE failed_attempts_6h (
    span        TIMESTAMP NOT NULL,
    tool        VARCHAR   NOT NULL,
    region      VARCHAR,
    error_class VARCHAR   NOT NULL,
    number      SMALLINT  NOT NULL,       -- within the call; 10 = 10 or more
    weight      DOUBLE    NOT NULL
);
CREATE TABLE failed_attempts_d AS SELECT * FROM failed_attempts_6h;

CREATE TABLE faults_6h (
    span          TIMESTAMP NOT NULL,
    tool          VARCHAR   NOT NULL,
    region        VARCHAR,
    error_class   VARCHAR   NOT NULL,     -- unclassified where the call has none
    classifier_id VARCHAR,
    error_type    VARCHAR,
    http_status   SMALLINT,
    weight        DOUBLE    NOT NULL,
    last_end      TIMESTAMP NOT NULL
);
CREATE TABLE faults_d AS SELECT * FROM faults_6h;

-- Of each tool the arguments that failed most often within the span.
CREATE TABLE arguments_6h (
    span        TIMESTAMP NOT NULL,
    tool        VARCHAR   NOT NULL,
    region      VARCHAR,
    args_hash   VARCHAR   NOT NULL,
    error_class VARCHAR,                  -- NULL: calls without a fault
    weight      DOUBLE    NOT NULL,
    last_end    TIMESTAMP NOT NULL
);
CREATE TABLE arguments_d AS SELECT * FROM arguments_6h;

-- Breakers that calls passed, by the process that keeps them.
CREATE TABLE guards_h (
    span        TIMESTAMP NOT NULL,
    tool        VARCHAR   NOT NULL,
    region      VARCHAR,
    upstream    VARCHAR,
    instance    VARCHAR
);
CREATE TABLE guards_d AS SELECT * FROM guards_h;

-- Which processes called, and when first and last.
CREATE TABLE callers_h (
    span        TIMESTAMP NOT NULL,
    instance    VARCHAR,
    first_start TIMESTAMP NOT NULL,
    last_end    TIMESTAMP NOT NULL
);
CREATE TABLE callers_d AS SELECT * FROM callers_h;

CREATE TABLE beats_h (
    span       TIMESTAMP NOT NULL,
    instance   VARCHAR   NOT NULL,
    first_beat TIMESTAMP NOT NULL,
    last_beat  TIMESTAMP NOT NULL,
    service    VARCHAR,                   -- this and the lists are the newest's
    breakers   JSON,
    running    JSON
);

-- Attempts get what windows and filters need in columns of their own.
ALTER TABLE attempts ADD COLUMN "end"       TIMESTAMP;
ALTER TABLE attempts ADD COLUMN service     VARCHAR;
ALTER TABLE attempts ADD COLUMN environment VARCHAR;
ALTER TABLE attempts ADD COLUMN agent       VARCHAR;
ALTER TABLE attempts ADD COLUMN weight      DOUBLE;
UPDATE attempts
SET "end" = "start"
        + to_microseconds((least(greatest(duration_seconds, 0), 1e9) * 1000000)::BIGINT),
    weight = 1;
UPDATE attempts
SET service = call.service, environment = call.environment, agent = call.agent,
    weight = call.weight
FROM tool_calls AS call
WHERE call.trace_id = attempts.trace_id AND call.span_id = attempts.call_span_id;

-- What is stored already has yet to be rolled up.
INSERT INTO dirty_spans
SELECT DISTINCT make_timestamp(microseconds - microseconds % (hours * 3600000000)), hours, FALSE
FROM (SELECT epoch_us("end") - 1 AS microseconds FROM tool_calls
      UNION ALL SELECT epoch_us("end") - 1 FROM attempts
      UNION ALL SELECT epoch_us(time) - 1 FROM heartbeats) AS moments,
     (VALUES (1), (6), (24)) AS lengths(hours);
