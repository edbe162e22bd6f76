"""What happened during one tool call, gathered in one place.

Wrappers and policies write these records and know nothing of OpenTelemetry or Prometheus;
:mod:`fuseboard.telemetry` reads them and knows nothing of policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

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


class AttemptRecord:
    """One physical attempt. Times are seconds unless their name says otherwise.

    Attributes:
        number: Counted from 1.
        delay: What was waited before it.
        started_unix_ns: Wall time of its start, nanoseconds since the epoch.
        started: Monotonic time of its start.
        fault: Why it failed.
        cut_by: Class name of what ended it before it could succeed or fail: cancellation, a
            consumer that left, an interrupt. Such an attempt did not succeed, yet has no fault.
        is_inner: Whether the tool made it itself, by a library's retry that is listened to.
        telemetry: Private to the telemetry: the attempt's open span, if any.
    """

    cut_by: str | None = None
    cost: float | None = None
    is_inner: bool = False

    def __init__(self, number: int, delay: float, started_unix_ns: int, started: float) -> None:
        self.number = number
        self.delay = delay
        self.started_unix_ns = started_unix_ns
        self.started = started
        self.duration = 0.0
        self.fault: Fault | None = None
        self.telemetry: object = None

    @property
    def result(self) -> AttemptResult:
        """``failure`` unless it succeeded; one that was cut short has no error class."""
        has_succeeded = self.fault is None and self.cut_by is None
        return AttemptResult.SUCCESS if has_succeeded else AttemptResult.FAILURE


TOOL_MARK: Final = "__fuseboard_tool__"
"""The attribute by which a function is known to be a tool already."""


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What is fixed about a tool when it is registered.

    Attributes:
        name: The tool's name; the only source of the ``tool`` label.
        type: ``function``, ``extension`` or ``datastore`` (OpenTelemetry GenAI).
        regions: Regions declared for this tool; empty means the process's own.
        upstream: The declared upstream, if it is fixed.
        hash_of: Hashes the arguments of a call, given as ``(args, kwargs)``; never raises.
    """

    name: str
    type: str = "function"
    regions: tuple[str, ...] = ()
    upstream: str | None = None
    hash_of: Callable[[tuple[Any, ...], dict[str, Any]], str | None] | None = field(
        default=None, compare=False, repr=False
    )


class _Attempts:
    """Makes a call's list of attempts when somebody first looks at it; most calls need none."""

    def __get__(self, call: CallRecord, owner: type[CallRecord]) -> list[AttemptRecord]:
        call.is_plain = False
        call.attempts = attempts = call.first_attempts()
        return attempts


class CallRecord:
    """One tool call, filled in while it runs. Times are seconds unless named otherwise.

    Attributes:
        tool: What is fixed about the tool.
        region: Where it acts, if that is known.
        upstream: What it talks to, if that is known.
        started_unix_ns: Wall time of its start, nanoseconds since the epoch.
        started: Monotonic time of its start.
        call_id: The model's id of the call, if it is known.
        agent: The agent that calls, if that is known.
        session: The conversation that the call belongs to, if that is known.
        step: The step or turn of the session; part of the idempotency key, not recorded.
        arguments: The bound arguments, only where recording them was asked for.
        idempotency_key: The key that the tool's policy made from the arguments, if it makes one.
        outcome: How it ended; None while it runs, and so with all that follows.
        fault: The fault that decided it; also set where it was handled (degraded, partial).
        layer_actions: (layer, action) pairs of ``conventions.LAYER_ACTIONS``, in the order they
            happened.
        cost: What it costs in all, in a unit of the tool's own.
        fallback_cost: What of that the fallback costs whose value is served, or which runs.
        spoilt_cost: What of that fallbacks cost whose value was of no use.
        result: The returned value, only where recording it was asked for.
        asked: The tool that is asked at present to stand in for this one.
        telemetry: Private to the telemetry: the call's open span and context.
        attempts: What was tried, in order.
        is_between_attempts: Whether a library's retry, made by the tool itself, is waiting.
        is_plain: Whether a call that succeeds has nothing on its record but its arguments'
            hash, its names, its ids and its breaker's state. Whoever notes more sets it to False.
    """

    if TYPE_CHECKING:
        attempts: list[AttemptRecord]
    else:
        attempts = _Attempts()

    # What few calls have is a default of the class. What every call sets or asks for is set when
    # it begins: Python stores and loads only such attributes without looking at the class.
    step: str | None = None
    arguments: Mapping[str, object] | None = None
    idempotency_key: str | None = None
    layer: Layer = Layer.TOOL
    retry_strategy: RetryStrategy = RetryStrategy.NONE
    retry_end: RetryEnd = RetryEnd.NONE
    backoff_seconds: float = 0.0
    result_age_seconds: float | None = None
    confidence: Confidence | None = None
    fallback_tool: str | None = None
    partial_failures: int | None = None
    cost: float | None = None
    fallback_cost: float | None = None
    spoilt_cost: float = 0.0
    stream_items: int | None = None
    stream_first_item_seconds: float | None = None
    layer_actions: tuple[tuple[str, str], ...] = ()
    result: object = None
    is_between_attempts: bool = False
    asked: ToolInfo | None = None

    def __init__(
        self,
        tool: ToolInfo,
        region: str | None,
        upstream: str | None,
        started_unix_ns: int,
        started: float,
        args_hash: str | None = None,
        call_id: str | None = None,
    ) -> None:
        """Begin a record.

        Args:
            tool: What is fixed about the tool.
            region: Where it acts.
            upstream: What it talks to.
            started_unix_ns: Wall time, nanoseconds since the epoch.
            started: Monotonic seconds.
            args_hash: The hash of the arguments.
            call_id: The model's id of the call.
        """
        self.tool = tool
        self.region = region
        self.upstream = upstream
        self.started_unix_ns = started_unix_ns
        self.started = started
        self.call_id = call_id
        self.agent: str | None = None
        self.session: str | None = None
        self.outcome: Outcome | None = None
        self.duration = 0.0
        self.fault: Fault | None = None
        self.breaker_state: BreakerState | None = None
        self.result_source: ResultSource | None = None
        self.telemetry: object = None
        self.is_plain = True
        self.unhashed_args: tuple[Any, ...] = ()
        # The arguments whose hash nobody has asked for yet; None where it is known or not wanted.
        self.unhashed_kwargs: dict[str, Any] | None = None
        self._hash = args_hash

    def first_attempts(self) -> list[AttemptRecord]:
        """Return the attempts that a call begins with: none."""
        return []

    def hash_later(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep arguments that cannot change, for whoever asks for their hash."""
        self.unhashed_args = args
        self.unhashed_kwargs = kwargs

    @property
    def args_hash(self) -> str | None:
        """The hash of the arguments, if they are hashed."""
        kwargs, make = self.unhashed_kwargs, self.tool.hash_of
        if kwargs is not None and make is not None:
            # Two threads may both get here, and find the same.
            self._hash = make(self.unhashed_args, kwargs)
            self.unhashed_kwargs = None
        return self._hash

    def add_up_costs(self) -> None:
        """Make ``cost`` the sum of what attempts and fallbacks cost."""
        priced = [attempt.cost for attempt in self.attempts if attempt.cost is not None]
        self.cost = sum(priced) + self.spoilt_cost + (self.fallback_cost or 0.0)

    def spoil_fallback(self) -> None:
        """Count what a fallback cost as spent for nothing."""
        if self.fallback_cost is not None:
            self.spoilt_cost += self.fallback_cost
            self.fallback_cost = None

    def note(self, layer: str, action: str) -> None:
        """Remember what a layer did."""
        self.is_plain = False
        self.layer_actions = (*self.layer_actions, (layer, action))


class BegunCall(CallRecord):
    """A call whose first attempt began with it."""

    def first_attempts(self) -> list[AttemptRecord]:
        """Return the attempt that began with the call, and so far went as the call did."""
        attempt = AttemptRecord(1, 0.0, self.started_unix_ns, self.started)
        attempt.duration = self.duration
        attempt.fault = self.fault
        return [attempt]


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
    ``begin`` and ``finish`` each stand for three and two of them, for the ordinary call.
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

    def begin(self, call: CallRecord) -> object:
        """Do ``call_started``, ``attempt_started`` of the first attempt, and ``enter``."""

    def finish(self, call: CallRecord) -> None:
        """Do ``attempt_ended`` of the only attempt, which ended as the call, and ``call_ended``."""

    def breaker_created(self, status: BreakerStatus) -> None:
        """Make a breaker's metric series exist."""

    def breaker_changed(self, transition: BreakerTransition) -> None:
        """Report a transition."""
