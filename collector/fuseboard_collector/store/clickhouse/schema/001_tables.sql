-- Columns are those of the embedded store's tables; a test holds the two together. What a client
-- resends to another server must count once, and what a trace comes to may be replaced: the
-- engine keeps, of rows with one sorting key, the one with the highest version, and drops it if
-- that one is marked as deleted. Queries read with `final = 1`. Days of arrival are the
-- partitions, so that retention drops them whole.

CREATE TABLE IF NOT EXISTS meta (
    key   String,
    value String
) ENGINE = ReplacingMergeTree ORDER BY key;

CREATE TABLE IF NOT EXISTS tool_calls (
    trace_id           String CODEC(ZSTD(1)),
    span_id            String CODEC(ZSTD(1)),
    "start"            DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    "end"              DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    received_at        DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_seconds   Float64 CODEC(ZSTD(1)),
    attempt_seconds    Nullable(Float64) CODEC(ZSTD(1)),
    tool               LowCardinality(String),
    server             LowCardinality(Nullable(String)),
    region             LowCardinality(Nullable(String)),
    environment        LowCardinality(Nullable(String)),
    service            LowCardinality(Nullable(String)),
    instance           LowCardinality(Nullable(String)),
    agent              LowCardinality(Nullable(String)),
    session            Nullable(String) CODEC(ZSTD(1)),
    framework          LowCardinality(Nullable(String)),
    outcome            LowCardinality(String),
    error_class        LowCardinality(Nullable(String)),
    error_type         LowCardinality(Nullable(String)),
    cause_type         LowCardinality(Nullable(String)),
    classifier_id      LowCardinality(Nullable(String)),
    retry_strategy     LowCardinality(Nullable(String)),
    http_status        Nullable(Int16),
    error_message      Nullable(String) CODEC(ZSTD(1)),
    retryable          Nullable(Bool),
    origin             LowCardinality(Nullable(String)),
    attempts           Int32,
    backoff_seconds    Nullable(Float64) CODEC(ZSTD(1)),
    layer              LowCardinality(Nullable(String)),
    breaker_state      LowCardinality(Nullable(String)),
    result_source      LowCardinality(Nullable(String)),
    result_age_seconds Nullable(Float64) CODEC(ZSTD(1)),
    confidence         LowCardinality(Nullable(String)),
    fallback_tool      LowCardinality(Nullable(String)),
    partial_failures   Nullable(Int32),
    cost               Nullable(Float64) CODEC(ZSTD(1)),
    args_hash          Nullable(String) CODEC(ZSTD(1)),
    upstream           LowCardinality(Nullable(String)),
    call_id            Nullable(String) CODEC(ZSTD(1)),
    weight             Float64 CODEC(ZSTD(1)),
    parent_span_id     Nullable(String) CODEC(ZSTD(1)),
    instrumentation    LowCardinality(Nullable(String)),
    attributes         Nullable(String) CODEC(ZSTD(3)),
    version            UInt64 CODEC(Delta, ZSTD(1)),
    is_deleted         UInt8,
    INDEX by_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 4
) ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (toStartOfHour("end"), tool, trace_id, span_id)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS attempts (
    trace_id         String CODEC(ZSTD(1)),
    call_span_id     String CODEC(ZSTD(1)),
    span_id          Nullable(String) CODEC(ZSTD(1)),
    number           Int32,
    "start"          DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    "end"            DateTime64(6, 'UTC')
                     DEFAULT addMicroseconds("start", toInt64(round(duration_seconds * 1000000)))
                     CODEC(Delta, ZSTD(1)),
    duration_seconds Float64 CODEC(ZSTD(1)),
    delay_seconds    Float64 CODEC(ZSTD(1)),
    tool             LowCardinality(String),
    region           LowCardinality(Nullable(String)),
    service          LowCardinality(Nullable(String)),
    environment      LowCardinality(Nullable(String)),
    agent            LowCardinality(Nullable(String)),
    result           LowCardinality(String),
    error_class      LowCardinality(Nullable(String)),
    error_type       LowCardinality(Nullable(String)),
    http_status      Nullable(Int16),
    cost             Nullable(Float64) CODEC(ZSTD(1)),
    weight           Float64 DEFAULT 1 CODEC(ZSTD(1)),
    received_at      DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    version          UInt64 CODEC(Delta, ZSTD(1)),
    is_deleted       UInt8,
    INDEX by_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 4
) ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (toStartOfHour("start"), tool, trace_id, call_span_id, number, coalesce(span_id, ''))
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS breaker_transitions (
    time          DateTime64(6, 'UTC'),
    breaker       LowCardinality(String),
    tool          LowCardinality(String),
    region        LowCardinality(Nullable(String)),
    upstream      LowCardinality(Nullable(String)),
    service       LowCardinality(Nullable(String)),
    instance      LowCardinality(Nullable(String)),
    environment   LowCardinality(Nullable(String)),
    from_state    LowCardinality(String),
    to_state      LowCardinality(String),
    reason        Nullable(String),
    failure_ratio Nullable(Float64),
    calls         Nullable(Int32),
    failures      Nullable(Int32),
    error_class   LowCardinality(Nullable(String)),
    trace_id      Nullable(String),
    span_id       Nullable(String),
    received_at   DateTime64(6, 'UTC')
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (time, breaker, coalesce(service, ''), coalesce(instance, ''), from_state, to_state)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS heartbeats (
    time            DateTime64(6, 'UTC'),
    service         LowCardinality(Nullable(String)),
    instance        String,
    environment     LowCardinality(Nullable(String)),
    region          LowCardinality(Nullable(String)),
    version         LowCardinality(Nullable(String)),
    breakers        Nullable(String),
    calls_in_flight Nullable(String),
    dropped         Nullable(String),
    overflow        Nullable(String),
    received_at     DateTime64(6, 'UTC')
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (time, instance, coalesce(service, ''))
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS spans (
    trace_id         String CODEC(ZSTD(1)),
    span_id          String CODEC(ZSTD(1)),
    parent_span_id   Nullable(String) CODEC(ZSTD(1)),
    name             LowCardinality(String),
    kind             LowCardinality(Nullable(String)),
    "start"          DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_seconds Float64 CODEC(ZSTD(1)),
    service          LowCardinality(Nullable(String)),
    status           LowCardinality(Nullable(String)),
    attributes       Nullable(String) CODEC(ZSTD(3)),
    received_at      DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    instrumentation  LowCardinality(Nullable(String)),
    session          Nullable(String) CODEC(ZSTD(1)),
    agent            LowCardinality(Nullable(String)),
    operation        LowCardinality(Nullable(String)),
    http_status      Nullable(Int16),
    input_tokens     Nullable(Int64),
    output_tokens    Nullable(Int64),
    version          UInt64 CODEC(Delta, ZSTD(1)),
    is_deleted       UInt8,
    INDEX by_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 4
) ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (toStartOfHour("start"), trace_id, span_id)
SETTINGS non_replicated_deduplication_window = 1000;

-- Kept until no relative is expected any more; queries do not read them.
CREATE TABLE IF NOT EXISTS sightings (
    trace_id         String CODEC(ZSTD(1)),
    span_id          String CODEC(ZSTD(1)),
    parent_span_id   Nullable(String) CODEC(ZSTD(1)),
    name             LowCardinality(String),
    kind             LowCardinality(Nullable(String)),
    "start"          DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_seconds Float64 CODEC(ZSTD(1)),
    dialect          LowCardinality(String),
    instrumentation  LowCardinality(Nullable(String)),
    tool             LowCardinality(String),
    server           LowCardinality(Nullable(String)),
    call_id          Nullable(String) CODEC(ZSTD(1)),
    args_hash        Nullable(String) CODEC(ZSTD(1)),
    attempt_number   Nullable(Int32),
    failed           Bool,
    error_type       LowCardinality(Nullable(String)),
    error_class      LowCardinality(Nullable(String)),
    classifier_id    LowCardinality(Nullable(String)),
    retryable        Nullable(Bool),
    origin           LowCardinality(Nullable(String)),
    http_status      Nullable(Int16),
    error_message    Nullable(String) CODEC(ZSTD(1)),
    evidence         Int32,
    service          LowCardinality(Nullable(String)),
    instance         LowCardinality(Nullable(String)),
    environment      LowCardinality(Nullable(String)),
    region           LowCardinality(Nullable(String)),
    session          Nullable(String) CODEC(ZSTD(1)),
    agent            LowCardinality(Nullable(String)),
    framework        LowCardinality(Nullable(String)),
    weight           Float64,
    attributes       Nullable(String) CODEC(ZSTD(3)),
    received_at      DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    version          UInt64 CODEC(Delta, ZSTD(1)),
    is_deleted       UInt8,
    INDEX by_trace trace_id TYPE bloom_filter(0.01) GRANULARITY 4
) ENGINE = ReplacingMergeTree(version, is_deleted)
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (toStartOfHour("start"), trace_id, span_id)
TTL toDateTime(received_at) + INTERVAL 1 DAY
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS alert_events (
    time        DateTime64(6, 'UTC'),
    alert       LowCardinality(String),
    severity    LowCardinality(String),
    labels      String,
    state       LowCardinality(String),
    active_at   Nullable(DateTime64(6, 'UTC')),
    fired_at    Nullable(DateTime64(6, 'UTC')),
    resolved_at Nullable(DateTime64(6, 'UTC')),
    value       Nullable(Float64)
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(time)
ORDER BY (time, alert)
SETTINGS non_replicated_deduplication_window = 1000;

-- One row: the engine keeps the newest.
CREATE TABLE IF NOT EXISTS alert_memory (
    saved_at DateTime64(6, 'UTC'),
    document String
) ENGINE = ReplacingMergeTree(saved_at) ORDER BY tuple();
