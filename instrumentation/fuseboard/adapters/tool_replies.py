"""What a model gets for a tool call in a loop of one's own: the result, or an error packet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fuseboard.calls.judging import judge_raised
from fuseboard.calls.packets import ErrorPacket, explain, packet_of
from fuseboard.calls.registration import Tool
from fuseboard.classification import judge_result
from fuseboard.conventions import Outcome
from fuseboard.record import TOOL_MARK
from fuseboard.runtime import RUNTIME


@dataclass(frozen=True, slots=True)
class Asked:
    """One tool call as the model asks for it.

    Attributes:
        name: The tool's name.
        arguments: JSON text, or what has been read from it.
        call_id: The model's id of the call.
    """

    name: str
    arguments: object
    call_id: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model gets for one call.

    Attributes:
        asked: The call.
        text: The result, or an error packet, as text.
        is_error: Whether it reports an error.
        value: What the tool returned, if it returned anything.
    """

    asked: Asked
    text: str
    is_error: bool = False
    value: Any = None


def failed(
    asked: Asked, function: Callable[..., Any], arguments: dict[str, Any], error: Exception
) -> Answered:
    """Answer a call that raised; what is no fault is raised again.

    Args:
        asked: The call.
        function: The tool, decorated.
        arguments: What it was given.
        error: What it raised.
    """
    known: Tool = getattr(function, TOOL_MARK)
    judged = judge_raised(known, error, (), arguments, None)
    if isinstance(judged, Outcome):
        raise error
    may_repeat = known.policy is not None and known.policy.may_repeat
    problems = explain(known, judged, error, (), arguments)
    return refused(asked, packet_of(judged, problems, may_repeat=may_repeat))


def refused(asked: Asked, packet: ErrorPacket, suggestion: str | None = None) -> Answered:
    """Answer a call with an error packet, without what is for engineers only."""
    told: dict[str, Any] = {key: value for key, value in packet.items() if key != "debug_info"}
    if suggestion is not None:
        told["suggestion"] = suggestion
    return Answered(asked, json.dumps(told), is_error=True)


def returned(asked: Asked, value: Any) -> Answered:
    """Answer a call with what it returned, which may report an error itself."""
    finding = judge_result(value, RUNTIME.clock.time_ns() / 1e9)
    is_error = finding is not None and finding.partial_failures is None
    shown = value
    if is_error and isinstance(value, Mapping):
        shown = {key: part for key, part in value.items() if key != "debug_info"}
    return Answered(asked, _as_text(shown), is_error, value)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        return str(value)


def _plain(value: Any) -> Any:
    """Return what JSON can say of an object: a pydantic model's fields, else its text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)
