"""What a recorded result says of the call: error flags inside it. Results are never stored."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from fuseboard_collector.normalise.incoming import Value

_MAX_RESULT: Final = 262_144
_MAX_LEVELS: Final = 6
# A LangChain message as Python prints it.
_TOOL_MESSAGE: Final = re.compile(r"tool_call_id='[^']*'.{0,200}\bstatus='error'", re.DOTALL)
_PRINTED_CONTENT: Final = re.compile(r"\Acontent=(['\"])(.*?)(?<!\\)\1", re.DOTALL)
_HANDLED_BY_ADK: Final = "ERROR_HANDLED_BY_REFLECT_AND_RETRY_PLUGIN"
# Under which a dialect keeps the result proper.
_WRAPPERS: Final = ("output", "response", "kwargs")


@dataclass(frozen=True, slots=True)
class Report:
    """The error that a result reports.

    Attributes:
        is_flagged: Whether a flag says that it is an error, or only a field called ``error``.
        text: What it says in words.
        error_type: A type, where it names one.
    """

    is_flagged: bool
    text: str | None = None
    error_type: str | None = None


def read_result(result: Value) -> Report | None:
    """Return the error that a recorded result reports; None if it reports none.

    ``isError``, ``is_error``, the status of a LangChain message or of a Strands result, and what
    Google ADK's retry plug-in answers are flags.

    Args:
        result: The attribute as it came: a structure, JSON text, JSON text quoted once more.
    """
    if isinstance(result, str):
        # Every spelling of a flag has this in it, and searching costs less than parsing.
        if "rror" not in result and "ERROR" not in result:
            return None
        if _TOOL_MESSAGE.search(result[-1024:]):
            content = _PRINTED_CONTENT.match(result[:4096])
            return Report(True, content.group(2) if content else None)
    return _search(_parsed(result), 0)


def _parsed(value: Value) -> Any:
    """Return a structure, however often it was turned into text; text that is no JSON as it is."""
    for _ in range(2):
        if not isinstance(value, str) or len(value) > _MAX_RESULT or value[:1] not in '{["':
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def _search(value: Any, level: int) -> Report | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or level == _MAX_LEVELS:
        return None
    if value.get("response_type") == _HANDLED_BY_ADK:
        return Report(True, _text(value.get("error_details")), _text(value.get("error_type")))
    if _is_flagged(value):
        return Report(True, _words_of(value))
    for name in _WRAPPERS:
        found = _search(_parsed(value.get(name)), level + 1)
        if found is not None:
            return found
    error = value.get("error")
    if error is None or error is False:
        return None
    words = _text(error) or (_words_of(error) if isinstance(error, dict) else None)
    return Report(False, words) if words else None


def _is_flagged(value: dict[str, Any]) -> bool:
    if value.get("isError") is True or value.get("is_error") is True:
        return True
    is_message = value.get("type") == "tool" or "tool_call_id" in value or "toolUseId" in value
    return is_message and value.get("status") == "error"


def _words_of(value: dict[str, Any]) -> str | None:
    for name in ("content", "result", "error", "message", "text"):
        found = _text(value.get(name))
        if found:
            return found
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        parts = [item.get("text") for item in value[:16] if isinstance(item, dict)]
        return "\n".join(part for part in parts if isinstance(part, str)) or None
    return value if isinstance(value, str) and value else None
