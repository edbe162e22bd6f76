-- Calls of other instrumentation are assembled from several spans, which may come late.

ALTER TABLE tool_calls ADD COLUMN parent_span_id VARCHAR;
ALTER TABLE tool_calls ADD COLUMN instrumentation VARCHAR;  -- fuseboard, or the foreign scope

ALTER TABLE spans ADD COLUMN instrumentation VARCHAR;
ALTER TABLE spans ADD COLUMN session         VARCHAR;
ALTER TABLE spans ADD COLUMN agent           VARCHAR;
ALTER TABLE spans ADD COLUMN operation       VARCHAR;       -- gen_ai.operation.name or its like
ALTER TABLE spans ADD COLUMN http_status     SMALLINT;
ALTER TABLE spans ADD COLUMN input_tokens    BIGINT;
ALTER TABLE spans ADD COLUMN output_tokens   BIGINT;

-- What each foreign span of a tool says, kept until no relative of it is to be expected any more.
CREATE TABLE sightings (
    trace_id          VARCHAR   NOT NULL,
    span_id           VARCHAR   NOT NULL,
    parent_span_id    VARCHAR,
    name              VARCHAR   NOT NULL,
    kind              VARCHAR,
    "start"           TIMESTAMP NOT NULL,
    duration_seconds  DOUBLE    NOT NULL,
    dialect           VARCHAR   NOT NULL,   -- the module that read it
    instrumentation   VARCHAR,
    tool              VARCHAR   NOT NULL,
    server            VARCHAR,
    call_id           VARCHAR,
    args_hash         VARCHAR,
    attempt_number    INTEGER,              -- where the span itself says so
    failed            BOOLEAN   NOT NULL,
    error_type        VARCHAR,
    error_class       VARCHAR,
    classifier_id     VARCHAR,
    retryable         BOOLEAN,
    origin            VARCHAR,
    http_status       SMALLINT,
    error_message     VARCHAR,
    evidence          INTEGER   NOT NULL,   -- how good the error type is: 0 none … 3 an attribute
    service           VARCHAR,
    instance          VARCHAR,
    environment       VARCHAR,
    region            VARCHAR,
    session           VARCHAR,
    agent             VARCHAR,
    framework         VARCHAR,
    weight            DOUBLE    NOT NULL,
    attributes        VARCHAR,              -- JSON text
    received_at       TIMESTAMP NOT NULL
);
