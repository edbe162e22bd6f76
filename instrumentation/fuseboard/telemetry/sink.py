"""What the wrappers report to: spreads each event over spans, logs and metrics."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Final

from fuseboard import conventions as c
from fuseboard.clock import Clock
from fuseboard.record import (
    AttemptRecord,
    BreakerStatus,
    BreakerTransition,
    CallRecord,
    ToolInfo,
)
from fuseboard.telemetry.attributes import (
    Attributes,
    end_attributes,
    transition_attributes,
)
from fuseboard.telemetry.capture import Capture
from fuseboard.telemetry.heartbeat import LONG_CALL_SECONDS, MAX_LISTED, Pulse, heartbeat_attributes
from fuseboard.telemetry.in_flight import ELSEWHERE
from fuseboard.telemetry.logs import EventLog
from fuseboard.telemetry.losses import Losses, Reason, Signal
from fuseboard.telemetry.metrics import Metrics
from fuseboard.telemetry.spans import OpenCall, SpanWriter, context_of, enter, leave
from fuseboard.telemetry.tool_span import ToolSpan

logger = logging.getLogger("fuseboard")

_NO_TOKEN: Final = None
_OPEN: Final = (ToolSpan, OpenCall)


def _nothing() -> None:
    pass


class OtelTelemetry:
    """Implements :class:`fuseboard.record.Telemetry`. No method raises.

    Attributes:
        metrics: Counts.
        identity: See below.
        when_alive: Called once, by the first call.

    Args:
        spans: Opens and closes the spans.
        events: Emits the log events.
        metrics: Counts.
        losses: Where our own faults are counted.
        clock: Source of time.
        breaker_statuses: Lists the present state of every breaker.
        identity: ``service.instance.id`` and version, for heartbeats.
        heartbeat_seconds: Interval of heartbeats.
        capture: What of arguments and results is recorded.
    """

    def __init__(
        self,
        spans: SpanWriter,
        events: EventLog,
        metrics: Metrics,
        losses: Losses,
        *,
        clock: Clock,
        breaker_statuses: Callable[[], list[BreakerStatus]],
        identity: Attributes,
        heartbeat_seconds: float,
        capture: Capture,
    ) -> None:
        self.metrics = metrics
        self.identity = identity
        self.when_alive: Callable[[], None] = _nothing
        self._spans = spans
        self._source = spans.source
        self._events = events
        self._losses = losses
        self._clock = clock
        self._breaker_statuses = breaker_statuses
        self._capture = capture
        self._pulse = Pulse(self.beat, heartbeat_seconds)
        self.after_fork()

    def after_fork(self) -> None:
        """Start anew in a forked child, whose first call starts its heartbeat."""
        self._lock = threading.RLock()
        self._is_alive = False
        self._faults: set[str] = set()
        self._pulse.after_fork()

    def _come_alive(self) -> None:
        with self._lock:
            if self._is_alive:
                return
            self._is_alive = True
        self._pulse.start()
        self.when_alive()

    def stop(self) -> None:
        """Send a last heartbeat and beat no more."""
        self._pulse.stop()
        if self._is_alive:
            self.beat()

    def _fail(self, signal: Signal, where: str) -> None:
        """Count a fault of our own, and say so once per kind, without the fault's own words."""
        self._losses.add(signal, Reason.INTERNAL)
        if where not in self._faults:
            self._faults.add(where)
            kind = sys.exc_info()[0]
            logger.warning(
                "fuseboard could not record %s (%s); the call itself is not affected. "
                "Further faults of this kind are counted in %s only.",
                where,
                kind.__name__ if kind else "unknown",
                c.METRIC_TELEMETRY_DROPPED,
            )

    def tool_registered(self, tool: ToolInfo) -> None:
        """Make a tool's metric series exist at zero."""
        try:
            self.metrics.tool_registered(tool)
            self._spans.tool_registered(tool)
        except Exception:
            self._fail(Signal.SPANS, "tool_registered")

    def call_started(self, call: CallRecord) -> None:
        """Open the call's span as a child of the current one; do not make it current."""
        try:
            if not self._is_alive:
                self._come_alive()
            self.metrics.in_flight.add(call)
            call.telemetry = self._spans.start(call)
        except Exception:
            self._fail(Signal.SPANS, "call_started")

    def enter(self, call: CallRecord) -> object:
        """Make the span of the call, or of its running attempt, current; return a token."""
        try:
            open_call = call.telemetry
            return enter(open_call) if isinstance(open_call, _OPEN) else _NO_TOKEN
        except Exception:
            self._fail(Signal.SPANS, "enter")
            return _NO_TOKEN

    def leave(self, token: object) -> None:
        """Restore what was current before the matching ``enter``."""
        try:
            leave(token)
        except Exception:
            self._fail(Signal.SPANS, "leave")

    def attempt_started(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Open the span of an attempt; the first attempt's span is written at its end."""
        try:
            open_call = call.telemetry
            if isinstance(open_call, _OPEN):
                self._spans.start_attempt(call, open_call, attempt)
        except Exception:
            self._fail(Signal.SPANS, "attempt_started")

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Close the attempt; its duration and fault are set."""
        try:
            open_call = call.telemetry
            if open_call is ELSEWHERE:
                return
            self.metrics.attempt_ended(call, attempt)
            if isinstance(open_call, _OPEN):
                self._spans.end_attempt(call, open_call, attempt)
        except Exception:
            self._fail(Signal.SPANS, "attempt_ended")

    def call_ended(self, call: CallRecord) -> None:
        """Close the call; every field of the record is final."""
        try:
            self.metrics.in_flight.remove(call)
            open_call = call.telemetry
            if type(open_call) is ToolSpan:
                self._end_light(call, open_call)
            elif isinstance(open_call, OpenCall):
                self._end(call, open_call)
            elif open_call is not ELSEWHERE:
                self.metrics.call_ended(call, None)
        except Exception:
            self._fail(Signal.SPANS, "call_ended")
        finally:
            call.telemetry = None

    def _end_light(self, call: CallRecord, span: ToolSpan) -> None:
        self.metrics.call_ended(call, span.trace_id)
        if call.arguments is not None or call.result is not None:
            span.captured = self._capture.attributes(call)
        self._spans.end(call, span)

    def _end(self, call: CallRecord, open_call: OpenCall) -> None:
        identity = open_call.identity
        is_sampled = identity.trace_flags.sampled
        self.metrics.call_ended(call, identity.trace_id if is_sampled else None)
        if call.arguments is not None or call.result is not None:
            open_call.span.set_attributes(self._capture.attributes(call))
        self._spans.end(call, open_call)
        if not is_sampled:
            self._log_call(call, open_call)

    def begin(self, call: CallRecord) -> object:
        """Open a call and its first attempt and make its span current, in one step."""
        try:
            if not self._is_alive:
                self._come_alive()
            self.metrics.in_flight.calls[id(call)] = call
            source = self._source
            if source is not None and source.is_open:
                token = source.begin(call)
                if token is not None:
                    return token
            return self._spans.begin(call)
        except Exception:
            self._fail(Signal.SPANS, "begin")
            return _NO_TOKEN

    def finish(self, call: CallRecord) -> None:
        """Close a call and its only attempt, which ended as the call did, in one step."""
        span = call.telemetry
        if type(span) is not ToolSpan:
            self.attempt_ended(call, call.attempts[0])
            self.call_ended(call)
            return
        try:
            metrics = self.metrics
            metrics.in_flight.calls.pop(id(call), None)
            is_plain = call.is_plain
            if is_plain and call.fault is None:
                metrics.succeeded(call, span.trace_id)
            else:
                metrics.finished(call, span.trace_id)
            if is_plain and span.source.end_plain(call, span):
                return
            if call.arguments is not None or call.result is not None:
                span.captured = self._capture.attributes(call)
            self._spans.end(call, span)
        except Exception:
            self._fail(Signal.SPANS, "finish")
        finally:
            call.telemetry = None

    def _log_call(self, call: CallRecord, open_call: OpenCall) -> None:
        parts = self._spans.parts
        attributes: Attributes = {
            **parts.start(call),
            **end_attributes(call),
            **self._capture.attributes(call),
            c.CALL_SPAN_NAME: parts.span_name(call.tool),
            c.CALL_START_UNIX_NANO: call.started_unix_ns,
            c.CALL_DURATION_SECONDS: call.duration,
        }
        self._events.emit(
            c.EVENT_TOOL_CALL, self._clock.time_ns(), attributes, context=open_call.context
        )

    def breaker_created(self, status: BreakerStatus) -> None:
        """Make a breaker's metric series exist."""
        try:
            self.metrics.breaker_created(status)
        except Exception:
            self._fail(Signal.LOGS, "breaker_created")

    def breaker_changed(self, transition: BreakerTransition) -> None:
        """Report a transition."""
        try:
            self.metrics.breaker_changed(transition)
            open_call = transition.call.telemetry if transition.call else None
            self._events.emit(
                c.EVENT_BREAKER_TRANSITION,
                transition.at_unix_ns,
                transition_attributes(transition),
                context=context_of(open_call) if isinstance(open_call, _OPEN) else None,
                is_warning=transition.to_state is c.BreakerState.OPEN,
            )
        except Exception:
            self._fail(Signal.LOGS, "breaker_changed")

    def beat(self) -> None:
        """Send one heartbeat."""
        try:
            self.metrics.publish()
            attributes = heartbeat_attributes(
                self._breaker_statuses(),
                self.metrics.in_flight.older_than(LONG_CALL_SECONDS, MAX_LISTED),
                self._losses.counts(),
                self.metrics.overflow(),
            )
            attributes.update(self.identity)
            self._events.emit(c.EVENT_HEARTBEAT, self._clock.time_ns(), attributes)
        except Exception:
            self._fail(Signal.LOGS, "heartbeat")


class LoggingTelemetry(OtelTelemetry):
    """Logs calls as well whose first attempt succeeded: the others are logged where they end.

    A class of its own, so that such a call pays only where it is to be logged.
    """

    log_ok: Callable[[CallRecord], None]

    def finish(self, call: CallRecord) -> None:
        """Log a call that simply succeeded, and close it."""
        if call.outcome is c.Outcome.OK:
            self.log_ok(call)
        super().finish(call)
