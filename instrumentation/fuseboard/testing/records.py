"""What a test sees of a call: plain values that no longer change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from fuseboard.conventions import Outcome
from fuseboard.record import AttemptRecord, CallRecord


@dataclass(frozen=True, slots=True, repr=False)
class CapturedAttempt:
    """One physical attempt.

    Attributes:
        tool: Name of the tool.
        number: Counted from 1.
        delay_seconds: What was waited before it.
        result: ``success`` or ``failure``.
        cut_by: Class name of what ended it early, if it neither succeeded nor failed.

    Since 0.1.
    """

    tool: str
    number: int
    delay_seconds: float
    duration_seconds: float
    result: str
    error_class: str | None
    error_type: str | None
    error_message: str | None
    http_status: int | None
    cut_by: str | None
    cost: float | None

    def __repr__(self) -> str:
        ending = self.error_class or self.cut_by
        return f"<attempt {self.number} at {self.tool}: {self.result}{_in_words(ending)}>"


@dataclass(frozen=True, slots=True, repr=False)
class CapturedCall:
    """One call that ended; fields have the names of the export of calls.

    Attributes:
        attempts: All of them, in order; empty if none was made.
        arguments: As they were bound, by name.
        result: What the caller got; None if it got an exception.
        error_message: The exception's own words, not redacted.
        layer_actions: (layer, action) pairs, in the order they happened.

    Since 0.1.
    """

    tool: str
    region: str | None
    upstream: str | None
    agent: str | None
    session: str | None
    call_id: str | None
    arguments: Mapping[str, object]
    args_hash: str | None
    outcome: str
    result: Any
    error_class: str | None
    error_type: str | None
    error_message: str | None
    classifier_id: str | None
    http_status: int | None
    retryable: bool | None
    retry_strategy: str
    layer: str
    layer_actions: tuple[tuple[str, str], ...]
    attempts: tuple[CapturedAttempt, ...]
    duration_seconds: float
    backoff_seconds: float
    breaker_state: str | None
    result_source: str | None
    result_age_seconds: float | None
    confidence: str | None
    fallback_tool: str | None
    partial_failures: int | None
    cost: float | None
    stream_items: int | None

    def __repr__(self) -> str:
        made = len(self.attempts)
        after = "" if made == 1 else f" after {made} attempts"
        return f"<call of {self.tool}: {self.outcome}{_in_words(self.error_class)}{after}>"

    def matches(self, facts: Mapping[str, object]) -> bool:
        """Tell whether the fields of those names have those values.

        Raises:
            TypeError: If there is no such field.
        """
        known = {field.name for field in fields(self)}
        unknown = facts.keys() - known
        if unknown:
            raise TypeError(f"a call has no {min(unknown)!r}; it has {', '.join(sorted(known))}")
        return all(getattr(self, name) == value for name, value in facts.items())


def _in_words(ending: str | None) -> str:
    return f", {ending}" if ending is not None else ""


def _text(value: str | None) -> str | None:
    """Return an enumeration's member as a plain text."""
    return None if value is None else str(value)


def attempt_of(call: CallRecord, attempt: AttemptRecord) -> CapturedAttempt:
    """Copy an attempt that ended."""
    fault = attempt.fault
    return CapturedAttempt(
        tool=call.tool.name,
        number=attempt.number,
        delay_seconds=attempt.delay,
        duration_seconds=attempt.duration,
        result=str(attempt.result),
        error_class=str(fault.verdict.error_class) if fault is not None else None,
        error_type=fault.error_type if fault is not None else None,
        error_message=fault.message if fault is not None else None,
        http_status=fault.verdict.http_status if fault is not None else None,
        cut_by=attempt.cut_by,
        cost=attempt.cost,
    )


def call_of(call: CallRecord) -> CapturedCall:
    """Copy a call that ended."""
    fault = call.fault
    verdict = fault.verdict if fault is not None else None
    return CapturedCall(
        tool=call.tool.name,
        region=call.region,
        upstream=call.upstream,
        agent=call.agent,
        session=call.session,
        call_id=call.call_id,
        arguments=MappingProxyType(dict(call.arguments or {})),
        args_hash=call.args_hash,
        outcome=str(call.outcome or Outcome.ERROR),
        result=call.result,
        error_class=str(verdict.error_class) if verdict is not None else None,
        error_type=fault.error_type if fault is not None else None,
        error_message=fault.message if fault is not None else None,
        classifier_id=verdict.classifier_id if verdict is not None else None,
        http_status=verdict.http_status if verdict is not None else None,
        retryable=verdict.retryable if verdict is not None else None,
        retry_strategy=str(call.retry_strategy),
        layer=str(call.layer),
        layer_actions=tuple((str(layer), str(action)) for layer, action in call.layer_actions),
        attempts=tuple(attempt_of(call, attempt) for attempt in call.attempts),
        duration_seconds=call.duration,
        backoff_seconds=call.backoff_seconds,
        breaker_state=_text(call.breaker_state),
        result_source=_text(call.result_source),
        result_age_seconds=call.result_age_seconds,
        confidence=_text(call.confidence),
        fallback_tool=call.fallback_tool,
        partial_failures=call.partial_failures,
        cost=call.cost,
        stream_items=call.stream_items,
    )
