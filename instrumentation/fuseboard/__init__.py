"""fuseboard: the fuse board for AI agents' tool calls.

Call :func:`init` once, decorate tools with :func:`tool`, and every call becomes a span with an
error class and counts in metrics. A :class:`Policy` guards calls with retry, breaker, timeout,
budget, cache and fallback.
"""

from fuseboard.calls import (
    CurrentCall,
    ErrorPacket,
    call,
    configure,
    current_call,
    error_packet,
    reload,
    tool,
    wrap,
)
from fuseboard.classification import classifier, reflection_hint
from fuseboard.conventions import (
    BreakerState,
    Confidence,
    Effects,
    ErrorClass,
    Outcome,
    ResultSource,
)
from fuseboard.errors import (
    AbandonedThreadsError,
    AskUserError,
    AttemptTimeoutError,
    BudgetExhaustedError,
    CallRejectedError,
    CircuitOpenError,
    ConfigurationError,
    FuseboardError,
    InvalidResultError,
    LimitExceededError,
    Problem,
    RepeatedCallError,
    SessionBudgetError,
)
from fuseboard.policy import (
    Breaker,
    Budget,
    Cache,
    Fallback,
    Limit,
    Policy,
    Repeats,
    Retry,
    Validation,
)
from fuseboard.policy.by_hand import BreakerSwitch, breaker, breakers
from fuseboard.policy.cache_redis import RedisStore
from fuseboard.record import BreakerStatus, Verdict
from fuseboard.sessions import Progress, Spent, session, turn
from fuseboard.setup import flush, init, metrics_text, serve_metrics, shutdown

__all__ = [
    "AbandonedThreadsError",
    "AskUserError",
    "AttemptTimeoutError",
    "Breaker",
    "BreakerState",
    "BreakerStatus",
    "BreakerSwitch",
    "Budget",
    "BudgetExhaustedError",
    "Cache",
    "CallRejectedError",
    "CircuitOpenError",
    "Confidence",
    "ConfigurationError",
    "CurrentCall",
    "Effects",
    "ErrorClass",
    "ErrorPacket",
    "Fallback",
    "FuseboardError",
    "InvalidResultError",
    "Limit",
    "LimitExceededError",
    "Outcome",
    "Policy",
    "Problem",
    "Progress",
    "RedisStore",
    "RepeatedCallError",
    "Repeats",
    "ResultSource",
    "Retry",
    "SessionBudgetError",
    "Spent",
    "Validation",
    "Verdict",
    "breaker",
    "breakers",
    "call",
    "classifier",
    "configure",
    "current_call",
    "error_packet",
    "flush",
    "init",
    "metrics_text",
    "reflection_hint",
    "reload",
    "serve_metrics",
    "session",
    "shutdown",
    "tool",
    "turn",
    "wrap",
]
