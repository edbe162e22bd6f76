"""What a foreign span says of a fault: type, message, HTTP status, and our class for it."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from fuseboard import conventions as c
from fuseboard.classification.chain import judge_exception
from fuseboard.classification.http import judge_status
from fuseboard.record import Fault, Verdict
from fuseboard.telemetry.redaction import redact
from fuseboard_collector.normalise.dialects.dialect import Dialect, value_at
from fuseboard_collector.normalise.incoming import ERROR_STATUS, IncomingSpan, Value
from fuseboard_collector.normalise.values import clean, count, text

EXCEPTION_EVENT = "exception"
EXCEPTION_TYPE = "exception.type"
EXCEPTION_MESSAGE = "exception.message"

# Types that only say that something went wrong, or that wrap the one that says what.
_GENERIC = frozenset({"_OTHER", "tool_error", "TOOL_ERROR"})
_WRAPPERS = frozenset({"Exception", "ToolRetryError", "ToolError", "UserError"})
_TRACEBACK = "Traceback (most recent call last)"
_NAME_IN_MESSAGE = re.compile(
    r"\s*([A-Za-z_][\w.]*(?:Error|Exception|Timeout|Exceeded|Interrupt))\s*[:(]"
)
_STATUS_IN_MESSAGE = re.compile(r"\b([45]\d\d)\b")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_HTTP_TYPE = re.compile(r"HTTP|Status|API", re.IGNORECASE)
_TIMEOUT_NAME = re.compile(r"timed?[-_ ]?out", re.IGNORECASE)
_CONNECTION_NAME = re.compile(r"Connect(ion)?(Error|Exception)\Z")
_VALIDATION_NAME = re.compile(r"Validation(Error|Exception)\Z")
_SCHEMA_ERROR = "pydantic_core._pydantic_core.ValidationError"
# JSON-RPC: a request time-out of MCP, and the codes that blame the caller.
_MCP_TIMEOUT = "-32001"
_CALLER_CODES = frozenset({"-32600", "-32601", "-32602", "-32700", "-32002"})


@dataclass(frozen=True, slots=True)
class ForeignFault:
    """The fault of a failed span.

    Attributes:
        status_is_guess: Whether the HTTP status was read out of a message.
        evidence: How good the type is: 0 there is none, 1 a generic word, 2 read out of a text,
            3 an attribute.
    """

    error_type: str | None
    message: str | None
    http_status: int | None
    status_is_guess: bool
    verdict: Verdict
    evidence: int


def fault_of(span: IncomingSpan, dialect: Dialect) -> ForeignFault | None:
    """Return a span's fault; None if it ended well.

    OK and UNSET both mean success. Some emitters set ``error.type``, some only the status,
    some only record an exception.
    """
    attributes = span.attributes
    exception = next((e.attributes for e in span.events if e.name == EXCEPTION_EVENT), None)
    failed = (
        span.status_code == ERROR_STATUS
        or attributes.get(c.ERROR_TYPE) not in (None, "")
        or exception is not None
        or any(attributes.get(name) == value for name, value in dialect.failed)
    )
    if not failed:
        return None
    raised = text((exception or {}).get(EXCEPTION_TYPE))
    raw = span.status_message or str(
        (exception or {}).get(EXCEPTION_MESSAGE) or value_at(attributes, dialect.message) or ""
    )
    message = clean(raw.split(_TRACEBACK, 1)[0].strip())[:4096]
    types = list(_types(text(attributes.get(c.ERROR_TYPE)), raised, message))
    status = count(attributes.get(c.HTTP_RESPONSE_STATUS_CODE), 999) or _status_code(types)
    guessed = _status_from(message, types) if status is None else None
    return ForeignFault(
        error_type=types[0] if types else None,
        message=redact(message)[: c.MAX_MESSAGE_LENGTH] if message else None,
        http_status=status or guessed,
        status_is_guess=guessed is not None,
        verdict=_verdict(tuple(types), status or guessed, message),
        evidence=_evidence(types, raised, attributes.get(c.ERROR_TYPE)),
    )


def _evidence(types: list[str], *told: Value) -> int:
    if not types:
        return 0
    if types[0] not in told:
        return 2
    return 1 if types[0] in _GENERIC or _last(types[0]) in _WRAPPERS else 3


def _types(error_type: str | None, raised: str | None, message: str) -> Iterator[str]:
    """Yield the names that the fault goes by, the most telling first."""
    told = [name for name in (error_type, raised) if name]
    specific = [name for name in told if name not in _GENERIC and _last(name) not in _WRAPPERS]
    yield from sorted(specific, key=lambda name: "." not in name)
    named = _NAME_IN_MESSAGE.match(message)
    if named and _last(named.group(1)) not in _WRAPPERS:
        yield named.group(1)
    yield from (name for name in told if name not in specific)


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _status_code(types: list[str]) -> int | None:
    """Return a status that serves as ``error.type``, as HTTP instrumentations do."""
    return next((int(t) for t in types if len(t) == 3 and t.isdecimal() and t[0] in "45"), None)


def _status_from(message: str, types: list[str]) -> int | None:
    """Read a status out of a message: of an HTTP error, or with its official phrase behind it."""
    found = _STATUS_IN_MESSAGE.search(message)
    if found is None:
        return None
    status = int(found.group(1))
    if any(_HTTP_TYPE.search(_last(name)) for name in types):
        return status
    phrase = _PHRASES.get(status)
    return status if phrase and message.startswith(phrase, found.end() + 1) else None


def _verdict(types: tuple[str, ...], status: int | None, message: str) -> Verdict:
    if status is not None and 400 <= status <= 599:
        return judge_status(status)
    is_timeout = _MCP_TIMEOUT in types and _TIMEOUT_NAME.search(message) is not None
    verdict = judge_name("TimeoutError" if is_timeout else "")
    for name in types:
        if verdict.error_class is not c.ErrorClass.UNCLASSIFIED:
            break
        verdict = judge_name(name)
    return verdict


@lru_cache(maxsize=1024)
def judge_name(name: str) -> Verdict:
    """Return the shim's verdict on an exception of which only the class name is known.

    A stand-in of the same qualified name is put to the shim's classifiers, so that both sides
    keep one table.

    Args:
        name: Class name, qualified or bare, or an error code.
    """
    module, _, last = name.rpartition(".")
    known = getattr(builtins, last, None)
    base: type[BaseException] = Exception
    if isinstance(known, type) and issubclass(known, Exception):
        base = known
    elif _TIMEOUT_NAME.search(last):
        base = TimeoutError
    elif _CONNECTION_NAME.search(last):
        base = ConnectionError
    elif _VALIDATION_NAME.search(last) or name in _CALLER_CODES:
        module, _, last = _SCHEMA_ERROR.rpartition(".")
    stand_in: Any = type(last or "Unknown", (base,), {"__module__": module or "builtins"})
    judged = judge_exception(stand_in.__new__(stand_in), 0.0)
    if isinstance(judged, Fault):
        return judged.verdict
    return Verdict(c.ErrorClass.UNCLASSIFIED, "unmatched", False, ambiguous=True)
