"""Error packets: what a model gets instead of an exception, in words that help it go on.

The words say what happened and what to do, and nothing of how: no class, host, URL or code of
anybody's. What an engineer wants to know stands apart, in ``debug_info``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from sys import exception
from types import CoroutineType
from typing import Any, Final, Literal, NamedTuple, TypedDict, TypeGuard

from fuseboard import guard
from fuseboard.calls.binding import misfits
from fuseboard.calls.judging import as_marked, judge_raised
from fuseboard.calls.registration import Tool
from fuseboard.classification import BINDING, judge_exception
from fuseboard.classification.problems import in_words, notes_of
from fuseboard.conventions import Effects, ErrorClass, Outcome
from fuseboard.errors import ConfigurationError, Problem
from fuseboard.record import Fault, Verdict
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.redaction import redact


class ErrorPacket(TypedDict):
    """What stands for an exception.

    Attributes:
        ok: False.
        error_code: One of a few codes of fuseboard's own, for programs.
        recoverable: Whether calling the tool again may help: corrected for ``invalid_request``,
            unchanged for the others.
        message: What happened, for the model or the user.
        suggestion: What to do now.
        debug_info: For engineers: class, exception, its redacted text; bounded.

    Since 0.1.
    """

    ok: Literal[False]
    error_code: str
    recoverable: bool
    message: str
    suggestion: str
    debug_info: dict[str, object]


class _Words(NamedTuple):
    code: str
    message: str
    suggestion: str


_GO_ON: Final = "go on without it, or tell the user that it can't be had"
_UNKNOWN_EFFECT: Final = (
    "It is not known whether the request took effect. Find that out before you repeat it, or "
    "tell the user."
)
_BY_CLASS: Final = {
    ErrorClass.L1_INPUT: _Words(
        "invalid_request",
        "The request can't be carried out as it is",
        "Correct the request and call the tool again.",
    ),
    ErrorClass.L2_ACCESS: _Words(
        "no_access",
        "The tool may not be used at present: access was refused, or a quota is used up",
        f"Do not call it again; {_GO_ON}.",
    ),
    ErrorClass.L3_TRANSIENT: _Words(
        "temporarily_unavailable",
        "The tool can't be reached at present",
        f"Try again {{later}}, or {_GO_ON}.",
    ),
    ErrorClass.L4_PERSISTENT: _Words(
        "unavailable", "The tool does not work at present", f"Do not call it again; {_GO_ON}."
    ),
    ErrorClass.L5_SEMANTIC: _Words(
        "unusable_answer",
        "The tool answered, but its answer is of no use",
        "Ask differently, or go on without this answer.",
    ),
    ErrorClass.UNCLASSIFIED: _Words(
        "failed", "The tool failed for a reason that is not known", f"You may {_GO_ON}."
    ),
}
_NOT_FOUND: Final = _Words(
    "not_found",
    "What was asked for does not exist",
    "Check the names and ids in the request, or look for something else.",
)
_TOO_OFTEN: Final = _Words(
    "too_many_requests",
    "The tool is asked too often at present",
    f"Try again {{later}}, or {_GO_ON}.",
)
_LATE: Final = _Words(
    "timed_out", "The tool did not answer in time", f"Try again {{later}}, or {_GO_ON}."
)
_BY_CLASSIFIER: Final = {
    "attempt_timeout": _LATE,
    "timeout_matcher": _LATE,
    "connect_timeout_matcher": _LATE,
    "budget_exhausted": _Words(
        "out_of_time", "The time for this request is used up", f"You may {_GO_ON}."
    ),
    "session_budget_exhausted": _Words(
        "out_of_budget",
        "What may be used in this session is used up",
        "Call no more tools; answer with what there is, and tell the user.",
    ),
    "circuit_open": _Words(
        "switched_off",
        "The tool is switched off for a while, because it kept failing",
        f"Try again {{later}} at the earliest, or {_GO_ON}.",
    ),
    "limit_exceeded": _TOO_OFTEN,
    "repeated_call": _Words(
        "repeated_request",
        "The same request was made before in this session, and its answer will not change",
        "Use the answers there are, or ask for something else.",
    ),
    "file_not_found_matcher": _NOT_FOUND,
    "unknown_tool_matcher": _NOT_FOUND,
}
_BY_STATUS: Final = {404: _NOT_FOUND, 429: _TOO_OFTEN}
_MAY_HELP: Final = frozenset({ErrorClass.L1_INPUT, ErrorClass.L3_TRANSIENT, ErrorClass.L5_SEMANTIC})


def error_packet(
    error: BaseException,
    *,
    effects: Effects | Literal["none", "idempotent", "unsafe"] = Effects.UNSAFE,
) -> ErrorPacket:
    """Return the packet that stands for an exception.

    Args:
        error: The exception. Whether it is a fault at all is the caller's to know: cancellation
            and control flow should be raised again.
        effects: What running the tool twice would do. If that is not known, a fault that leaves
            open whether the tool took effect is not called recoverable.

    Since 0.1.
    """
    judged = judge_exception(error, RUNTIME.clock.time_ns() / 1e9)
    if isinstance(judged, Outcome):
        return {
            "ok": False,
            "error_code": str(judged),
            "recoverable": False,
            "message": "The tool did not finish.",
            "suggestion": "Wait for what it waits for, or tell the user.",
            "debug_info": {"outcome": str(judged)},
        }
    may_repeat = Effects(effects) is not Effects.UNSAFE
    return packet_of(judged, notes_of(error), may_repeat=may_repeat)


def packet_of(fault: Fault, problems: tuple[Problem, ...], *, may_repeat: bool) -> ErrorPacket:
    """Return the packet that stands for a fault.

    Args:
        fault: The fault.
        problems: What is wrong with the arguments or the answer.
        may_repeat: Whether running the tool twice does no harm.
    """
    verdict = fault.verdict
    words = _words_for(verdict)
    is_open = verdict.ambiguous and not may_repeat
    recoverable = verdict.error_class in _MAY_HELP and not is_open
    suggestion = words.suggestion.format(later=_later(verdict.retry_after))
    message = f"{words.message}: {in_words(problems)}" if problems else words.message
    return {
        "ok": False,
        "error_code": words.code,
        "recoverable": recoverable,
        "message": f"{message}.",
        "suggestion": _UNKNOWN_EFFECT if is_open else suggestion,
        "debug_info": _debug_info(fault),
    }


def words_of(packet: ErrorPacket) -> str:
    """Return a packet's words for the model."""
    return f"{packet['message']} {packet['suggestion']}"


def is_packet(value: object) -> TypeGuard[ErrorPacket]:
    """Tell whether a value is a packet as fuseboard makes them."""
    return type(value) is dict and value.keys() == ErrorPacket.__annotations__.keys()


def answer_sync(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns a packet where ``function`` raises a fault."""

    def answering(*args: Any, **kwargs: Any) -> Any:
        ambient = exception()
        try:
            value = function(*args, **kwargs)
        except Exception as error:
            packet = packet_for(tool, error, args, kwargs, ambient)
            if packet is None:
                raise
            return packet
        if type(value) is CoroutineType:
            return _answer_later(tool, value, args, kwargs)
        return value

    return answering


def answer_async(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function that returns a packet where ``function`` raises a fault."""

    async def answering(*args: Any, **kwargs: Any) -> Any:
        ambient = exception()
        try:
            return await function(*args, **kwargs)
        except Exception as error:
            packet = packet_for(tool, error, args, kwargs, ambient)
            if packet is None:
                raise
            return packet

    return answering


def answer_in_packets(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what ``function`` is, with packets for its faults.

    Raises:
        ConfigurationError: If it is a generator, which can't return anything any more.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            f"on_error='packet' for {tool.info.name!r}: a stream has delivered items before it "
            "fails, so there is nothing that a packet could stand for; catch its exceptions and "
            "use fuseboard.error_packet"
        )
    if inspect.iscoroutinefunction(function):
        return answer_async(tool, function)
    return answer_sync(tool, function)


async def _answer_later(
    tool: Tool, work: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    ambient = exception()
    try:
        return await work
    except Exception as error:
        packet = packet_for(tool, error, args, kwargs, ambient)
        if packet is None:
            raise
        return packet


def packet_for(
    tool: Tool,
    error: Exception,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ambient: BaseException | None,
) -> ErrorPacket | None:
    """Return the packet for what a tool raised; None for what is to be raised on.

    Args:
        tool: The tool.
        error: What it raised.
        args: Positional arguments of the call.
        kwargs: Keyword arguments of the call.
        ambient: What the caller was handling when the call began.
    """
    try:
        judged = judge_raised(tool, error, args, kwargs, ambient)
        if isinstance(judged, Outcome):
            return None
        policy = tool.policy
        if policy is not None and policy.poll is not None:
            judged = as_marked(error, judged)
        may_repeat = policy is not None and policy.may_repeat
        return packet_of(judged, explain(tool, judged, error, args, kwargs), may_repeat=may_repeat)
    except Exception as fault:
        guard.swallow("making an error packet", fault)
        return None


def explain(
    tool: Tool,
    fault: Fault,
    error: BaseException | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Problem, ...]:
    """Return what is wrong with the arguments or the answer, as far as somebody says so."""
    if fault.verdict is BINDING:
        return misfits(tool.signature, args, kwargs)
    if error is None or fault.verdict.error_class not in (
        ErrorClass.L1_INPUT,
        ErrorClass.L5_SEMANTIC,
    ):
        return ()
    return notes_of(error)


def _words_for(verdict: Verdict) -> _Words:
    found = _BY_CLASSIFIER.get(verdict.classifier_id)
    if found is None and verdict.error_class in (ErrorClass.L1_INPUT, ErrorClass.L3_TRANSIENT):
        found = _BY_STATUS.get(verdict.http_status or 0)
    return found or _BY_CLASS[verdict.error_class]


def _later(retry_after: float | None) -> str:
    if retry_after is None:
        return "in a moment"
    return f"in about {max(1, round(retry_after))} seconds"


def _debug_info(fault: Fault) -> dict[str, object]:
    verdict = fault.verdict
    found: dict[str, object] = {
        "error_class": str(verdict.error_class),
        "error_type": redact(fault.error_type),
        "classifier_id": verdict.classifier_id,
        "detail": redact(fault.message),
    }
    if verdict.http_status is not None:
        found["http_status"] = verdict.http_status
    if verdict.retry_after is not None:
        found["retry_after_seconds"] = verdict.retry_after
    return found
