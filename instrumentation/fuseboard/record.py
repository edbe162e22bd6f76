"""What happened during one tool call, gathered in one place.

Wrappers and policies write these records and know nothing of OpenTelemetry or Prometheus;
:mod:`fuseboard.telemetry` reads them and knows nothing of policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fuseboard.conventions import (
    AttemptResult,
    BreakerState,
    Confidence,
    ErrorClass,
    Layer,
    Origin,
    Outcome,
    ResultSource,
    RetryEnd,
    RetryStrategy,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a classifier says of a fault.

    Attributes:
        error_class: The class of the fault.
        classifier_id: The classifier that matched, for example ``http_5xx_matcher``.
        retryable: Whether the same request may succeed later.
        ambiguous: Whether the tool may have taken effect although it failed (a timeout, a
            connection lost after sending); such faults are retried only where running the
            tool twice does no harm.
        origin: Which part of the agent the fault comes from.
        http_status: The HTTP status, if one is known.
        retry_after: Seconds that the server asked to wait, if it did.
        cause_type: Class name of the exception that decided, where it is not the one that
            the caller sees.
    """

    error_class: ErrorClass
    classifier_id: str
    retryable: bool
    ambiguous: bool = False
    origin: Origin = Origin.TOOL
    http_status: int | None = None
    retry_after: float | None = None
    cause_type: str | None = None


@dataclass(slots=True)
class Fault:
    """A failed attempt or call: the verdict and the words that go with it.

    Attributes:
        verdict: The classification.
        error_type: Qualified class name of the exception that the caller sees (builtins
            bare), or a short code for a returned error.
        message: The raw message, not yet redacted or bounded; the telemetry does both.
    """

    verdict: Verdict
    error_type: str
    message: str


@dataclass(slots=True)
class AttemptRecord:
    """One physical attempt. Times are seconds unless their name says otherwise.

    Attributes:
        fault: Why it failed.
        cut_by: Class name of what ended it before it could succeed or fail: cancellation, a
            consumer that left, an interrupt. Such an attempt did not succeed, yet has no fault.
    """

    number: int
    delay: float
    started_unix_ns: int
    started: float
    duration: float = 0.0
    fault: Fault | None = None
    cut_by: str | None = None
    cost: float | None = None
    telemetry: object = None
    """Private to the telemetry: the attempt's open span, if any."""

    @property
    def result(self) -> AttemptResult:
        """``failure`` unless it succeeded; one that was cut short has no error class."""
        has_succeeded = self.fault is None and self.cut_by is None
        return AttemptResult.SUCCESS if has_succeeded else AttemptResult.FAILURE


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What is fixed about a tool when it is registered.

    Attributes:
        name: The tool's name; the only source of the ``tool`` label.
        type: ``function``, ``extension`` or ``datastore`` (OpenTelemetry GenAI).
        regions: Regions declared for this tool; empty means the process's own.
        upstream: The declared upstream, if it is fixed.
        has_breaker: Whether a circuit breaker guards it.
    """

    name: str
    type: str = "function"
    regions: tuple[str, ...] = ()
    upstream: str | None = None
    has_breaker: bool = False


@dataclass(slots=True)
class CallRecord:
    """One tool call, filled in while it runs. Times are seconds unless named otherwise."""

    tool: ToolInfo
    region: str | None
    upstream: str | None
    started_unix_ns: int
    started: float
    args_hash: str | None = None
    call_id: str | None = None
    agent: str | None = None
    session: str | None = None
    arguments: Mapping[str, object] | None = None
    """The bound arguments, only where recording them was asked for."""
    idempotency_key: str | None = None
    """The key that the tool's policy made from the arguments, if it makes one."""

    # Known at the end.
    outcome: Outcome | None = None
    duration: float = 0.0
    fault: Fault | None = None
    """The fault that decided the call; also set where it was handled (degraded, partial)."""
    layer: Layer = Layer.TOOL
    retry_strategy: RetryStrategy = RetryStrategy.NONE
    retry_end: RetryEnd = RetryEnd.NONE
    attempts: list[AttemptRecord] = field(default_factory=list)
    backoff_seconds: float = 0.0
    breaker_state: BreakerState | None = None
    result_source: ResultSource | None = None
    result_age_seconds: float | None = None
    confidence: Confidence | None = None
    fallback_tool: str | None = None
    partial_failures: int | None = None
    cost: float | None = None
    stream_items: int | None = None
    stream_first_item_seconds: float | None = None
    layer_actions: list[tuple[str, str]] = field(default_factory=list)
    """(layer, action) pairs of ``conventions.LAYER_ACTIONS``, in the order they happened."""
    result: object = None
    """The returned value, only where recording it was asked for."""
    telemetry: object = None
    """Private to the telemetry: the call's open span and context tokens."""


@dataclass(frozen=True, slots=True)
class BreakerTransition:
    """A breaker changed its state.

    Attributes:
        name: ``tool/region/upstream`` of the breaker; absent parts are left out.
        failure_ratio: Failures over calls in the window that decided, 0 to 1; None where no
            window decided.
        error_class: The most frequent class among the failures of that window.
        call: The call that caused the change, if one did.
        at_unix_ns: Wall time of the change, nanoseconds since the epoch.
    """

    name: str
    tool: str
    region: str | None
    upstream: str | None
    from_state: BreakerState
    to_state: BreakerState
    reason: str
    failure_ratio: float | None
    calls: int
    failures: int
    error_class: ErrorClass | None
    at_unix_ns: int
    call: CallRecord | None = None


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """The present state of one breaker, for heartbeats and gauges.

    Attributes:
        since_unix_ns: When it entered the state, nanoseconds since the epoch.
    """

    name: str
    tool: str
    region: str | None
    upstream: str | None
    state: BreakerState
    since_unix_ns: int


class Telemetry(Protocol):
    """What the wrappers tell the outside. No method may raise into the agent.

    For one call the order is: ``call_started``; ``attempt_started`` and ``attempt_ended`` for
    each attempt; between them, around each stretch of the tool's own code, ``enter`` and
    ``leave`` in the same context; ``call_ended`` once. ``breaker_*`` may come at any time.
    """

    def tool_registered(self, tool: ToolInfo) -> None:
        """Make a tool's metric series exist at zero."""

    def call_started(self, call: CallRecord) -> None:
        """Open the call's span as a child of the current one; do not make it current."""

    def enter(self, call: CallRecord) -> object:
        """Make the span of the call, or of its running attempt, current; return a token."""

    def leave(self, token: object) -> None:
        """Restore what was current before the matching ``enter``."""

    def attempt_started(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Open the span of an attempt; the first attempt's span is written at its end."""

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Close the attempt; its duration and fault are set."""

    def call_ended(self, call: CallRecord) -> None:
        """Close the call; every field of the record is final."""

    def breaker_created(self, status: BreakerStatus) -> None:
        """Make a breaker's metric series exist."""

    def breaker_changed(self, transition: BreakerTransition) -> None:
        """Report a transition."""
