-- Append-only: no primary keys and no indexes (they cost 3.7 times the CPU and five times the
-- space, and arrival order already is time order). Times are UTC without a zone, microseconds.
-- Absent is NULL, never an empty string. Column names are those of the export records.

CREATE TABLE meta (
    key   VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

CREATE TABLE tool_calls (
    trace_id           VARCHAR   NOT NULL,  -- 32 hex digits
    span_id            VARCHAR   NOT NULL,  -- 16 hex digits
    "start"            TIMESTAMP NOT NULL,
    "end"              TIMESTAMP NOT NULL,
    received_at        TIMESTAMP NOT NULL,
    duration_seconds   DOUBLE    NOT NULL,  -- includes back-off
    attempt_seconds    DOUBLE,              -- sum over attempts
    tool               VARCHAR   NOT NULL,
    server             VARCHAR,             -- MCP server
    region             VARCHAR,
    environment        VARCHAR,
    service            VARCHAR,
    instance           VARCHAR,
    agent              VARCHAR,
    session            VARCHAR,
    framework          VARCHAR,
    outcome            VARCHAR   NOT NULL,  -- conventions.Outcome
    error_class        VARCHAR,             -- conventions.ErrorClass
    error_type         VARCHAR,
    cause_type         VARCHAR,
    classifier_id      VARCHAR,
    retry_strategy     VARCHAR,
    http_status        SMALLINT,
    error_message      VARCHAR,
    retryable          BOOLEAN,
    origin             VARCHAR,
    attempts           INTEGER   NOT NULL,  -- physical attempts; 0 if the tool was never reached
    backoff_seconds    DOUBLE,
    layer              VARCHAR,
    breaker_state      VARCHAR,
    result_source      VARCHAR,
    result_age_seconds DOUBLE,
    confidence         VARCHAR,
    fallback_tool      VARCHAR,
    partial_failures   INTEGER,
    cost               DOUBLE,
    args_hash          VARCHAR,
    upstream           VARCHAR,
    call_id            VARCHAR,
    weight             DOUBLE    NOT NULL,  -- calls that this row stands for; 1 unless sampled
    attributes         VARIANT              -- span attributes without a column of their own
);

CREATE TABLE attempts (
    trace_id         VARCHAR   NOT NULL,
    call_span_id     VARCHAR   NOT NULL,
    span_id          VARCHAR,               -- NULL where the row is derived from the call
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
    received_at      TIMESTAMP NOT NULL
);

CREATE TABLE breaker_transitions (
    time          TIMESTAMP NOT NULL,
    breaker       VARCHAR   NOT NULL,
    tool          VARCHAR   NOT NULL,
    region        VARCHAR,
    upstream      VARCHAR,
    service       VARCHAR,
    instance      VARCHAR,
    environment   VARCHAR,
    from_state    VARCHAR   NOT NULL,
    to_state      VARCHAR   NOT NULL,
    reason        VARCHAR,
    failure_ratio DOUBLE,
    calls         INTEGER,
    failures      INTEGER,
    error_class   VARCHAR,
    trace_id      VARCHAR,
    span_id       VARCHAR,
    received_at   TIMESTAMP NOT NULL
);

CREATE TABLE heartbeats (
    time            TIMESTAMP NOT NULL,
    service         VARCHAR,
    instance        VARCHAR   NOT NULL,
    environment     VARCHAR,
    region          VARCHAR,
    version         VARCHAR,
    breakers        JSON,                   -- [{breaker, tool, region, upstream, state, since}]
    calls_in_flight JSON,                   -- [{tool, region, span_id, start, args_hash}]
    dropped         JSON,                   -- {signal/reason: count}
    overflow        JSON,                   -- {label: count}
    received_at     TIMESTAMP NOT NULL
);

-- Spans that are no tool calls (agents, model calls): lean, for context around a call.
CREATE TABLE spans (
    trace_id         VARCHAR   NOT NULL,
    span_id          VARCHAR   NOT NULL,
    parent_span_id   VARCHAR,
    name             VARCHAR   NOT NULL,
    kind             VARCHAR,
    "start"          TIMESTAMP NOT NULL,
    duration_seconds DOUBLE    NOT NULL,
    service          VARCHAR,
    status           VARCHAR,
    attributes       VARIANT,
    received_at      TIMESTAMP NOT NULL
);

-- One row per state change of an alert instance; the newest row of an instance is its state.
CREATE TABLE alert_events (
    time        TIMESTAMP NOT NULL,
    alert       VARCHAR   NOT NULL,
    severity    VARCHAR   NOT NULL,
    labels      JSON      NOT NULL,         -- sorted keys: the identity of the instance
    state       VARCHAR   NOT NULL,         -- pending, firing, no_data, resolved, inactive
    active_at   TIMESTAMP,
    fired_at    TIMESTAMP,
    resolved_at TIMESTAMP,
    value       DOUBLE
);

-- The evaluator's own memory, one JSON document, replaced as a whole after each change.
CREATE TABLE alert_memory (
    saved_at TIMESTAMP NOT NULL,
    document JSON      NOT NULL
);
