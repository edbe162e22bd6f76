"""fuseboard: the fuse board for AI agents' tool calls.

Call :func:`init` once, decorate tools with :func:`tool`, and every call becomes a span with an
error class and counts in metrics. A :class:`Policy` guards calls with retry, breaker, timeout,
budget, cache and fallback.
"""

from typing import TYPE_CHECKING

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
    Origin,
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
    Feedback,
    Limit,
    Mistake,
    Pending,
    Policy,
    Poll,
    Repeats,
    Retry,
    Validation,
)
from fuseboard.policy.by_hand import BreakerSwitch, breaker, breakers
from fuseboard.record import BreakerStatus, Verdict
from fuseboard.sessions import Progress, Spent, session, turn
from fuseboard.setup import flush, init, metrics_text, serve_metrics, shutdown

if TYPE_CHECKING:
    from fuseboard.policy.cache_redis import RedisStore
else:

    def __getattr__(name: str) -> object:
        """Import what few need when it is asked for, so that the others do not pay for it."""
        if name == "RedisStore":
            from fuseboard.policy.cache_redis import RedisStore

            return RedisStore
        raise AttributeError(f"module 'fuseboard' has no attribute {name!r}")


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
    "Feedback",
    "FuseboardError",
    "InvalidResultError",
    "Limit",
    "LimitExceededError",
    "Mistake",
    "Origin",
    "Outcome",
    "Pending",
    "Policy",
    "Poll",
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
