"""Every attribute, metric, event and value name that fuseboard makes public, spelled once.

Changing a name here is a breaking change: it needs a changelog entry and a migration.
Names follow OpenTelemetry's GenAI ``execute_tool`` convention where one exists, and the
vocabulary of Polly, resilience4j and MicroProfile Fault Tolerance where none does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ErrorClass(StrEnum):
    """What kind of fault a call met; drives retry, breaker, severity and ownership."""

    L1_INPUT = "L1_input"
    L2_ACCESS = "L2_access"
    L3_TRANSIENT = "L3_transient"
    L4_PERSISTENT = "L4_persistent"
    L5_SEMANTIC = "L5_semantic"
    UNCLASSIFIED = "unclassified"


class Outcome(StrEnum):
    """How a call ended; exactly one per call."""

    OK = "ok"
    PARTIAL = "partial"
    DEGRADED = "degraded"
    ERROR = "error"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    INTERRUPTED = "interrupted"


class Layer(StrEnum):
    """The layer of the onion that decided a call."""

    TOOL = "tool"
    POOL = "pool"
    SERIALIZATION = "serialization"
    TIMEOUT = "timeout"
    RETRY = "retry"
    BREAKER = "breaker"
    LIMIT = "limit"
    BUDGET = "budget"
    CACHE = "cache"
    VALIDATION = "validation"
    FALLBACK = "fallback"


class BreakerState(StrEnum):
    """State of a circuit breaker; ``isolated`` is held open by hand."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    ISOLATED = "isolated"


class RetryStrategy(StrEnum):
    """How the shim answered a fault."""

    NONE = "none"
    EXPONENTIAL_BACKOFF_FULL_JITTER = "exponential_backoff_full_jitter"
    RETRY_AFTER = "retry_after"
    FEEDBACK = "feedback"
    SWITCH = "switch"


class Origin(StrEnum):
    """Which part of the agent a fault comes from."""

    INPUT = "input"
    MODEL = "model"
    TOOL = "tool"
    ORCHESTRATION = "orchestration"


class ResultSource(StrEnum):
    """Where the value that the caller got came from."""

    LIVE = "live"
    CACHE = "cache"
    FALLBACK = "fallback"
    DEFAULT = "default"


class Confidence(StrEnum):
    """How far the value that the caller got can be trusted."""

    HIGH = "high"
    MEDIUM_HIGH = "medium_high"
    MEDIUM = "medium"
    LOW = "low"


class Effects(StrEnum):
    """Whether running a tool twice does harm; gates the retry of ambiguous failures."""

    NONE = "none"
    IDEMPOTENT = "idempotent"
    UNSAFE = "unsafe"


class AttemptResult(StrEnum):
    """How one attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"


class RetryEnd(StrEnum):
    """How the retries of a call ended, for the ``retry`` label."""

    NONE = "none"
    RECOVERED = "recovered"
    EXHAUSTED = "exhausted"
    STOPPED = "stopped"


NO_ERROR: Final = "none"
UNKNOWN_REGION: Final = "unknown"
OTHER_LABEL: Final = "_other"
MAX_MESSAGE_LENGTH: Final = 512
SCOPE_NAME: Final = "fuseboard"

# --- Span names and attributes -------------------------------------------------------------
EXECUTE_TOOL: Final = "execute_tool"
TOOL_ATTEMPT: Final = "tool_attempt"

GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
CLOUD_REGION: Final = "cloud.region"
SERVER_ADDRESS: Final = "server.address"
HTTP_RESPONSE_STATUS_CODE: Final = "http.response.status_code"

ERROR_TYPE: Final = "error.type"
ERROR_CLASSIFIED_AS: Final = "error.classified_as"
ERROR_CLASSIFIER_ID: Final = "error.classifier_id"
ERROR_RETRY_STRATEGY: Final = "error.retry_strategy"

ARGS_HASH: Final = "fuseboard.args_hash"
OUTCOME: Final = "fuseboard.outcome"
ATTEMPTS: Final = "fuseboard.attempts"
ATTEMPT_SECONDS: Final = "fuseboard.attempt.seconds"
BACKOFF_SECONDS: Final = "fuseboard.backoff_seconds"
LAYER: Final = "fuseboard.layer"
BREAKER_STATE: Final = "fuseboard.breaker.state"
RESULT_SOURCE: Final = "fuseboard.result.source"
RESULT_AGE_SECONDS: Final = "fuseboard.result.age_seconds"
RESULT_CONFIDENCE: Final = "fuseboard.result.confidence"
FALLBACK_TOOL: Final = "fuseboard.fallback.tool"
PARTIAL_FAILURES: Final = "fuseboard.partial_failures"
COST: Final = "fuseboard.cost"
STREAM_ITEMS: Final = "fuseboard.stream.items"
STREAM_FIRST_ITEM_SECONDS: Final = "fuseboard.stream.first_item_seconds"
ERROR_RETRYABLE: Final = "fuseboard.error.retryable"
ERROR_ORIGIN: Final = "fuseboard.error.origin"
ERROR_CAUSE_TYPE: Final = "fuseboard.error.cause_type"
ERROR_MESSAGE: Final = "fuseboard.error.message"
# On spans of other instrumentation: fuseboard has a span of its own for the same call.
DUPLICATE: Final = "fuseboard.duplicate"
# In the store only: what the collector had to change in a span to be able to keep it.
RECEIVED_MARKS: Final = "fuseboard.received.marks"
ATTEMPT_NUMBER: Final = "fuseboard.attempt.number"
ATTEMPT_DELAY_SECONDS: Final = "fuseboard.attempt.delay_seconds"

# --- Resource attributes -------------------------------------------------------------------
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE_ID: Final = "service.instance.id"
SERVICE_VERSION: Final = "service.version"
DEPLOYMENT_ENVIRONMENT: Final = "deployment.environment.name"
FUSEBOARD_VERSION: Final = "fuseboard.version"

# --- Log events ----------------------------------------------------------------------------
EVENT_BREAKER_TRANSITION: Final = "fuseboard.breaker.transition"
EVENT_HEARTBEAT: Final = "fuseboard.process.heartbeat"
EVENT_TOOL_CALL: Final = "fuseboard.tool.call"

BREAKER_NAME: Final = "fuseboard.breaker.name"
BREAKER_FROM: Final = "fuseboard.breaker.from"
BREAKER_TO: Final = "fuseboard.breaker.to"
BREAKER_REASON: Final = "fuseboard.breaker.reason"
BREAKER_FAILURE_RATIO: Final = "fuseboard.breaker.failure_ratio"
BREAKER_CALLS: Final = "fuseboard.breaker.calls"
BREAKER_FAILURES: Final = "fuseboard.breaker.failures"

# The heartbeat's lists are JSON text, so that any OTLP pipeline carries them unchanged.
HEARTBEAT_BREAKERS: Final = "fuseboard.heartbeat.breakers"
HEARTBEAT_CALLS_IN_FLIGHT: Final = "fuseboard.heartbeat.calls_in_flight"
HEARTBEAT_DROPPED: Final = "fuseboard.heartbeat.dropped"
HEARTBEAT_OVERFLOW: Final = "fuseboard.heartbeat.overflow"
HEARTBEAT_INTERVAL_SECONDS: Final = 15.0

# A call whose span was not sampled travels as one log event; these complete its record.
CALL_SPAN_NAME: Final = "fuseboard.call.span_name"
CALL_START_UNIX_NANO: Final = "fuseboard.call.start_unix_nano"
CALL_DURATION_SECONDS: Final = "fuseboard.call.duration_seconds"

# --- Log records of the standard library ---------------------------------------------------
CALL_LOGGER: Final = "fuseboard.calls"
CALL_LOG_FIELDS: Final = (
    "trace_id",
    "span_id",
    "tool",
    "region",
    "upstream",
    "agent",
    "session",
    "call_id",
    "outcome",
    "error_class",
    "error_type",
    "error_message",
    "classifier_id",
    "http_status",
    "layer",
    "attempts",
    "duration_seconds",
    "backoff_seconds",
    "breaker_state",
    "result_source",
    "fallback_tool",
    "partial_failures",
    "cost",
    "args_hash",
)
"""Fields of a call's record; those of the export of calls have the same names."""

# --- Prometheus metrics --------------------------------------------------------------------
METRIC_CALLS: Final = "fuseboard_tool_calls_total"
METRIC_CALL_DURATION: Final = "fuseboard_tool_call_duration_seconds"
METRIC_ATTEMPTED_CALLS: Final = "fuseboard_tool_attempted_calls_total"
METRIC_ATTEMPTS: Final = "fuseboard_tool_attempts_total"
METRIC_ATTEMPT_DURATION: Final = "fuseboard_tool_attempt_duration_seconds"
METRIC_BACKOFF: Final = "fuseboard_tool_backoff_seconds_total"
METRIC_IN_FLIGHT: Final = "fuseboard_tool_calls_in_flight"
METRIC_OLDEST_CALL_AGE: Final = "fuseboard_tool_oldest_call_age_seconds"
METRIC_LAYER_ACTIONS: Final = "fuseboard_layer_actions_total"
METRIC_COST: Final = "fuseboard_tool_cost_total"
METRIC_BREAKER_STATE: Final = "fuseboard_breaker_state"
METRIC_BREAKER_TRANSITIONS: Final = "fuseboard_breaker_transitions_total"
METRIC_BREAKER_STATE_SECONDS: Final = "fuseboard_breaker_state_seconds_total"
METRIC_ABANDONED_THREADS: Final = "fuseboard_abandoned_threads"
METRIC_TELEMETRY_DROPPED: Final = "fuseboard_telemetry_dropped_total"
METRIC_LABEL_OVERFLOW: Final = "fuseboard_label_overflow_total"
METRIC_BUILD_INFO: Final = "fuseboard_build_info"

DURATION_BUCKETS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
)  # fmt: skip
METRICS_PORT: Final = 9464

LAYER_ACTIONS: Final = (
    ("timeout", "timed_out"),
    ("breaker", "rejected"),
    ("limit", "queued"),
    ("limit", "rejected"),
    ("budget", "exhausted"),
    ("cache", "hit_memory"),
    ("cache", "hit_redis"),
    ("cache", "stale"),
    ("cache", "miss"),
    ("validation", "failed"),
    ("validation", "partial"),
    ("fallback", "served"),
    ("fallback", "failed"),
    ("fallback", "handed_over"),
    ("pool", "exhausted"),
    ("serialization", "failed"),
)
"""The legal (layer, action) label pairs of ``fuseboard_layer_actions_total``."""


def legal_outcome_classes() -> tuple[tuple[Outcome, str], ...]:
    """Return the legal (outcome, error class) label pairs of ``fuseboard_tool_calls_total``.

    Returns:
        23 pairs: four outcomes without a fault, ``partial`` with L5, and three outcomes
        with each of the six classes.
    """
    clean = (Outcome.OK, Outcome.CANCELLED, Outcome.ABANDONED, Outcome.INTERRUPTED)
    faulty = (Outcome.DEGRADED, Outcome.ERROR, Outcome.REJECTED)
    return (
        *((outcome, NO_ERROR) for outcome in clean),
        (Outcome.PARTIAL, ErrorClass.L5_SEMANTIC.value),
        *((outcome, cls.value) for outcome in faulty for cls in ErrorClass),
    )


# --- Environment variables -----------------------------------------------------------------
ENV_SERVICE: Final = "FUSEBOARD_SERVICE"
ENV_REGION: Final = "FUSEBOARD_REGION"
ENV_ENVIRONMENT: Final = "FUSEBOARD_ENVIRONMENT"
ENV_ENDPOINT: Final = "FUSEBOARD_ENDPOINT"
ENV_HEADERS: Final = "FUSEBOARD_HEADERS"
ENV_CONFIG: Final = "FUSEBOARD_CONFIG"
ENV_LOG_CALLS: Final = "FUSEBOARD_LOG_CALLS"
ENV_HASH_KEY: Final = "FUSEBOARD_HASH_KEY"
DEFAULT_HASH_KEY: Final = "fuseboard-published-default-key-v1"
CONFIG_FILE: Final = "fuseboard.toml"
ARGS_HASH_VERSION: Final = "v1"
