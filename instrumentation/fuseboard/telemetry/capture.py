"""Arguments and results as attributes, only where the application asked for it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from fuseboard import conventions as c
from fuseboard.arguments import plain
from fuseboard.conventions import MAX_MESSAGE_LENGTH
from fuseboard.record import CallRecord
from fuseboard.telemetry.attributes import Attributes
from fuseboard.telemetry.redaction import MASK, name, redact

MAX_CAPTURED: Final = 8192
_SECRET_NAME: Final = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential"
    r"|authorization|cookie|signature",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Capture:
    """What is recorded of what goes in and comes out of a tool.

    Attributes:
        arguments: Whether the bound arguments are recorded.
        results: Whether the returned value is recorded.
    """

    arguments: bool = False
    results: bool = False

    def attributes(self, call: CallRecord) -> Attributes:
        """Return the opt-in attributes of a call: strict JSON, bounded and redacted."""
        attributes: Attributes = {}
        if self.arguments and call.arguments is not None:
            attributes[c.GEN_AI_TOOL_CALL_ARGUMENTS] = captured(dict(call.arguments))
        if self.results and call.result is not None:
            attributes[c.GEN_AI_TOOL_CALL_RESULT] = captured(call.result)
        return attributes


def captured(value: object) -> str:
    """Return a value as strict JSON of at most 8192 characters, redacted."""
    try:
        text = json.dumps(_masked(plain(value, _shown)), allow_nan=False, ensure_ascii=True)
    except Exception:
        return '{"$type":"unreadable"}'
    if len(text) <= MAX_CAPTURED:
        return text
    return json.dumps({"$type": "more", "length": len(text), "start": text[: MAX_CAPTURED // 2]})


def _shown(text: str) -> object:
    """Return a text redacted; one that was cut says how long it was."""
    shown = redact(text)
    if len(text) <= MAX_MESSAGE_LENGTH:
        return shown
    return {"$type": "str", "length": len(text), "start": shown}


def _masked(value: object) -> object:
    """Mask the values under keys that name a secret."""
    if isinstance(value, dict):
        return {
            name(key): MASK if _SECRET_NAME.search(key) else _masked(item)
            for key, item in value.items()
        }
    return [_masked(item) for item in value] if isinstance(value, list) else value
