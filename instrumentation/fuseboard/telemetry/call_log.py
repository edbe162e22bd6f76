"""One record per call for the standard ``logging`` module: a sentence, and the facts as fields."""

from __future__ import annotations

import logging
import threading
from typing import Final

from fuseboard import conventions as c
from fuseboard import guard
from fuseboard.conventions import ErrorClass, Outcome
from fuseboard.record import CallRecord, Fault
from fuseboard.telemetry.redaction import name, redact
from fuseboard.telemetry.spans import OpenCall
from fuseboard.telemetry.tool_span import ToolSpan

LOGGER: Final = logging.getLogger(c.CALL_LOGGER)

_LEVELS: Final = {
    Outcome.OK: logging.DEBUG,
    Outcome.PARTIAL: logging.WARNING,
    Outcome.DEGRADED: logging.WARNING,
    Outcome.ERROR: logging.ERROR,
    Outcome.REJECTED: logging.ERROR,
    Outcome.CANCELLED: logging.INFO,
    Outcome.ABANDONED: logging.INFO,
    Outcome.INTERRUPTED: logging.INFO,
}


def level_of(call: CallRecord) -> int:
    """Return the level of a call's record: errors that the model has to correct are warnings."""
    outcome = call.outcome or Outcome.ERROR
    fault = call.fault
    is_for_the_model = fault is not None and fault.verdict.error_class is ErrorClass.L1_INPUT
    return logging.WARNING if is_for_the_model else _LEVELS[outcome]


class CallLog:
    """Writes the records.

    Args:
        with_ok: Whether calls that are ``ok`` are logged as well.
    """

    def __init__(self, *, with_ok: bool) -> None:
        self._with_ok = with_ok
        self._inside = threading.local()

    def write(self, call: CallRecord) -> None:
        """Log a call whose record is final; it is still open for the telemetry. Never raises."""
        if call.outcome is Outcome.OK and not self._with_ok:
            return
        level = level_of(call)
        # Without a handler ``logging`` would print to stderr, which nobody asked for.
        if not LOGGER.isEnabledFor(level) or not LOGGER.hasHandlers():
            return
        if getattr(self._inside, "is_writing", False):
            return  # a handler that calls tools would have its own calls logged without end
        self._inside.is_writing = True
        try:
            LOGGER.handle(_record(call, level))
        except Exception as fault:
            guard.swallow("logging a call", fault)
        finally:
            self._inside.is_writing = False


def _record(call: CallRecord, level: int) -> logging.LogRecord:
    message, args = _sentence(call)
    fields = dict(zip(c.CALL_LOG_FIELDS, _values(call), strict=True))
    # Where in our own code it was written says nothing to anybody.
    return LOGGER.makeRecord(LOGGER.name, level, "fuseboard", 0, message, args, None, extra=fields)


def _sentence(call: CallRecord) -> tuple[str, tuple[object, ...]]:
    attempts = len(call.attempts)
    outcome = (call.outcome or Outcome.ERROR).value
    words = "tool call %s: %s after %d attempt%s and %.3f s"
    args: tuple[object, ...] = (
        name(call.tool.name), outcome, attempts, "" if attempts == 1 else "s", call.duration,
    )  # fmt: skip
    if call.fallback_tool is not None:
        words, args = f"{words}, served by %s", (*args, name(call.fallback_tool))
    fault = call.fault
    if fault is not None:
        words = f"{words}: %s (%s)"
        args = (*args, fault.verdict.error_class.value, _described(fault))
    return words, args


def _described(fault: Fault) -> str:
    kind = name(fault.error_type)
    # One line a call: a server's message must not look like a record of its own.
    return f"{kind}: {' '.join(redact(fault.message).split())}" if fault.message else kind


def _values(call: CallRecord) -> tuple[object, ...]:
    """Return the values of ``conventions.CALL_LOG_FIELDS``, None where there is none."""
    span = call.telemetry
    ids = span.identity if isinstance(span, ToolSpan | OpenCall) else None
    source, state = call.result_source, call.breaker_state
    return (
        f"{ids.trace_id:032x}" if ids is not None else None,
        f"{ids.span_id:016x}" if ids is not None else None,
        name(call.tool.name),
        _name(call.region),
        _name(call.upstream),
        _name(call.agent),
        _name(call.session),
        _name(call.call_id),
        (call.outcome or Outcome.ERROR).value,
        *_values_of(call.fault),
        call.layer.value,
        len(call.attempts),
        call.duration,
        call.backoff_seconds,
        state.value if state is not None else None,
        source.value if source is not None else None,
        _name(call.fallback_tool),
        call.partial_failures,
        call.cost,
        call.args_hash,
    )


def _values_of(fault: Fault | None) -> tuple[object, ...]:
    if fault is None:
        return (None,) * 5
    verdict = fault.verdict
    return (
        verdict.error_class.value,
        name(fault.error_type),
        redact(fault.message) if fault.message else None,
        name(verdict.classifier_id),
        verdict.http_status,
    )


def _name(text: str | None) -> str | None:
    return None if text is None else name(text)
