"""CallRecord → the attributes of its spans. Pure functions; absent values cost nothing."""

from __future__ import annotations

from typing import Final, NamedTuple

from fuseboard import conventions as c
from fuseboard.conventions import Outcome
from fuseboard.record import AttemptRecord, BreakerTransition, CallRecord, Fault, ToolInfo
from fuseboard.telemetry.redaction import name, redact

Value = str | int | float | bool
Attributes = dict[str, Value]

FAILED: Final = frozenset({Outcome.ERROR, Outcome.REJECTED})
FAULTY: Final = FAILED | {Outcome.DEGRADED, Outcome.PARTIAL}
_MAX_REMEMBERED: Final = 1024


class _Parts(NamedTuple):
    call_name: str
    attempt_name: str
    attributes: Attributes


class ToolParts:
    """What is fixed about the spans of each tool: names and first attributes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Parts] = {}

    def _of(self, tool: ToolInfo) -> _Parts:
        key = (tool.name, tool.type)
        known = self._known.get(key)
        if known is None:
            named = name(tool.name)
            attributes: Attributes = {
                c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL,
                c.GEN_AI_TOOL_NAME: named,
                c.GEN_AI_TOOL_TYPE: name(tool.type),
            }
            known = _Parts(f"{c.EXECUTE_TOOL} {named}", f"{c.TOOL_ATTEMPT} {named}", attributes)
            # Tools made up at run time must not grow this for ever.
            if len(self._known) < _MAX_REMEMBERED:
                self._known[key] = known
        return known

    def span_name(self, tool: ToolInfo, *, is_attempt: bool = False) -> str:
        """Return the name of a tool's call spans, or of its attempt spans."""
        parts = self._of(tool)
        return parts.attempt_name if is_attempt else parts.call_name

    def start(self, call: CallRecord) -> Attributes:
        """Return a call's attributes as known at its start."""
        attributes = self._of(call.tool).attributes.copy()
        if (args_hash := call.args_hash) is not None:
            attributes[c.ARGS_HASH] = args_hash
        if call.region is not None:
            attributes[c.CLOUD_REGION] = name(call.region)
        if call.upstream is not None:
            attributes[c.SERVER_ADDRESS] = name(call.upstream)
        if call.call_id is not None:
            attributes[c.GEN_AI_TOOL_CALL_ID] = name(call.call_id)
        if call.agent is not None:
            attributes[c.GEN_AI_AGENT_NAME] = name(call.agent)
        if call.session is not None:
            attributes[c.GEN_AI_CONVERSATION_ID] = name(call.session)
        return attributes


def end_attributes(call: CallRecord) -> Attributes:
    """Return a call's attributes that are known only at its end."""
    outcome = call.outcome or Outcome.ERROR
    attempts = call.attempts
    attributes: Attributes = {
        c.OUTCOME: outcome.value,
        c.ATTEMPTS: len(attempts),
        c.BACKOFF_SECONDS: call.backoff_seconds,
        c.LAYER: call.layer.value,
    }
    if attempts:
        attributes[c.ATTEMPT_SECONDS] = sum([attempt.duration for attempt in attempts])
    if call.breaker_state is not None:
        attributes[c.BREAKER_STATE] = call.breaker_state.value
    if call.result_source is not None:
        attributes[c.RESULT_SOURCE] = call.result_source.value
    if call.fault is not None and outcome in FAULTY:
        _add_fault(attributes, call.fault, is_failed=outcome in FAILED)
        attributes[c.ERROR_RETRY_STRATEGY] = call.retry_strategy.value
    _add_rare(attributes, call)
    return attributes


def _add_rare(attributes: Attributes, call: CallRecord) -> None:
    if call.confidence is not None:
        attributes[c.RESULT_CONFIDENCE] = call.confidence.value
    if call.fallback_tool is not None:
        attributes[c.FALLBACK_TOOL] = name(call.fallback_tool)
    for key, value in (
        (c.RESULT_AGE_SECONDS, call.result_age_seconds),
        (c.PARTIAL_FAILURES, call.partial_failures),
        (c.COST, call.cost),
        (c.STREAM_ITEMS, call.stream_items),
        (c.STREAM_FIRST_ITEM_SECONDS, call.stream_first_item_seconds),
    ):
        if value is not None:
            attributes[key] = value


def attempt_attributes(call: CallRecord, attempt: AttemptRecord) -> Attributes:
    """Return the attributes of an attempt's span, whatever is known of it so far."""
    attributes: Attributes = {
        c.GEN_AI_TOOL_NAME: name(call.tool.name),
        c.ATTEMPT_NUMBER: attempt.number,
        c.ATTEMPT_DELAY_SECONDS: attempt.delay,
    }
    if call.region is not None:
        attributes[c.CLOUD_REGION] = name(call.region)
    if attempt.cost is not None:
        attributes[c.COST] = attempt.cost
    if attempt.fault is not None:
        _add_fault(attributes, attempt.fault, is_failed=True)
    elif attempt.cut_by is not None:
        attributes[c.ERROR_TYPE] = name(attempt.cut_by)  # no fault, hence no class
    return attributes


def _add_fault(attributes: Attributes, fault: Fault, *, is_failed: bool) -> None:
    verdict = fault.verdict
    if is_failed:
        # An error that was handled leaves no error.type on the span of the whole call.
        attributes[c.ERROR_TYPE] = name(fault.error_type)
    attributes[c.ERROR_CLASSIFIED_AS] = verdict.error_class.value
    attributes[c.ERROR_CLASSIFIER_ID] = name(verdict.classifier_id)
    attributes[c.ERROR_RETRYABLE] = verdict.retryable
    attributes[c.ERROR_ORIGIN] = verdict.origin.value
    if fault.message:
        attributes[c.ERROR_MESSAGE] = redact(fault.message)
    if verdict.cause_type is not None:
        attributes[c.ERROR_CAUSE_TYPE] = name(verdict.cause_type)
    if verdict.http_status is not None:
        attributes[c.HTTP_RESPONSE_STATUS_CODE] = verdict.http_status


def transition_attributes(transition: BreakerTransition) -> Attributes:
    """Return the attributes of a breaker's transition event."""
    attributes: Attributes = {
        c.BREAKER_NAME: name(transition.name),
        c.BREAKER_FROM: transition.from_state.value,
        c.BREAKER_TO: transition.to_state.value,
        c.BREAKER_REASON: redact(transition.reason),
        c.BREAKER_CALLS: transition.calls,
        c.BREAKER_FAILURES: transition.failures,
        c.GEN_AI_TOOL_NAME: name(transition.tool),
    }
    if transition.failure_ratio is not None:
        attributes[c.BREAKER_FAILURE_RATIO] = transition.failure_ratio
    if transition.error_class is not None:
        attributes[c.ERROR_CLASSIFIED_AS] = transition.error_class.value
    if transition.region is not None:
        attributes[c.CLOUD_REGION] = name(transition.region)
    if transition.upstream is not None:
        attributes[c.SERVER_ADDRESS] = name(transition.upstream)
    return attributes
