"""What a foreign span says of a fault: whether there is one, its type, words and status."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from fuseboard import conventions as c
from fuseboard.classification.validation import BINDING
from fuseboard.classification.verdicts import input_fault
from fuseboard.record import Verdict
from fuseboard.telemetry import redaction
from fuseboard_collector.normalise import wording
from fuseboard_collector.normalise.dialects.dialect import Dialect, result_of, value_at
from fuseboard_collector.normalise.incoming import ERROR_STATUS, Attributes, IncomingSpan, Value
from fuseboard_collector.normalise.judging import judge_code_in, judge_http, judge_name, judge_names
from fuseboard_collector.normalise.results import Report, read_result
from fuseboard_collector.normalise.values import clean, count, text

EXCEPTION_EVENT = "exception"
EXCEPTION_TYPE = "exception.type"
EXCEPTION_MESSAGE = "exception.message"
EXCEPTION_STACK = "exception.stacktrace"
TOOL_STATUS = "gen_ai.tool.status"

NO_EVIDENCE, GENERIC_WORD, READ_IN_TEXT, IN_ATTRIBUTE = range(4)

# Types that only say that something went wrong, or that wrap the one that says what.
_GENERIC: Final = frozenset(
    {
        "_OTHER", "tool_error", "TOOL_ERROR", "Exception", "BaseException", "Error", "unknown",
        "ToolRetryError", "ToolError", "ToolException", "UserError", "ModelRetry",
    }
)  # fmt: skip
_MCP_ERRORS: Final = frozenset({"McpError", "MCPError", "-32001"})
_OF_THE_SYSTEM: Final = frozenset({"OSError", "IOError"})
# Of the shim, where it would look at the cause, which a span does not have.
_DIRECTIONS: Final = frozenset(
    {"connect_matcher", "connection_matcher", "dns_unknown_host_matcher"}
)
# What MCP's convention calls an error that was returned, not raised.
_RETURNED: Final = "tool_error"
_BLAMED: Final = {
    wording.UNKNOWN_TOOL: input_fault("unknown_tool_matcher"),
    wording.INVALID_ARGUMENTS: BINDING,
}


@dataclass(frozen=True, slots=True)
class ForeignFault:
    """The fault of a failed span.

    Attributes:
        evidence: How good ``error_type`` is: 0 there is none, 1 a generic word, 2 read out of a
            text, 3 an attribute.
        status_is_guess: Whether the HTTP status was read out of a message.
    """

    error_type: str | None
    evidence: int
    message: str | None
    http_status: int | None
    status_is_guess: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Said:
    """All that a span says of its fault, before anything is made of it."""

    error_type: str | None
    raised: str | None
    words: str
    """The message as it came, bounded."""
    causes: tuple[str, ...]
    tool: str
    status: int | None


def fault_of(span: IncomingSpan, dialect: Dialect, tool: str = "") -> ForeignFault | None:
    """Return a span's fault; None if it ended well.

    OK and UNSET both mean success. Some emitters set ``error.type``, some only the status,
    some only record an exception, some only flag the result. A result that merely has a field
    ``error``, which nobody flagged, is no failure.

    Args:
        span: A span that tells of a call.
        dialect: Whose words it uses.
        tool: The tool's name.
    """
    attributes = span.attributes
    exception = next((e.attributes for e in span.events if e.name == EXCEPTION_EVENT), None)
    failed = (
        span.status_code == ERROR_STATUS
        or attributes.get(c.ERROR_TYPE) not in (None, "")
        or exception is not None
        or any(attributes.get(name) == value for name, value in dialect.failed)
    )
    report = read_result(result_of(span, dialect))
    if not failed and (report is None or not report.is_flagged):
        return None
    return _conclude(_gather(span, dialect, exception or {}, report, tool))


def _gather(
    span: IncomingSpan, dialect: Dialect, exception: Attributes, report: Report | None, tool: str
) -> _Said:
    attributes = span.attributes
    raised = text(exception.get(EXCEPTION_TYPE))
    told = (
        span.status_message,
        exception.get(EXCEPTION_MESSAGE),
        value_at(attributes, dialect.message),
        report.text if report is not None else None,
    )
    error_type = _told_type(attributes, dialect, raised, report)
    return _Said(
        error_type,
        raised,
        _best_words(told, (error_type, raised)),
        # A stack only helps where the type is a wrapper; without it fewer faults are different.
        _causes(exception.get(EXCEPTION_STACK)) if _is_generic(raised) else (),
        tool,
        count(attributes.get(c.HTTP_RESPONSE_STATUS_CODE), 999),
    )


def _told_type(
    attributes: Attributes, dialect: Dialect, raised: str | None, report: Report | None
) -> str | None:
    told = text(attributes.get(c.ERROR_TYPE)) or text(value_at(attributes, dialect.error_type))
    if told is None and report is not None:
        told = report.error_type
    return (
        _RETURNED if told is None and raised is None and _is_returned(attributes, report) else told
    )


def _is_returned(attributes: Attributes, report: Report | None) -> bool:
    """Return whether the tool answered with an error, as opposed to raising one."""
    return attributes.get(TOOL_STATUS) == "error" or (report is not None and report.is_flagged)


def _causes(stack: Value) -> tuple[str, ...]:
    return tuple(wording.causes_in(stack)) if isinstance(stack, str) else ()


def _best_words(told: tuple[Value, ...], names: tuple[str | None, ...]) -> str:
    """Return the first message that says more than the name of the fault."""
    fallback = ""
    for words in told:
        if not isinstance(words, str) or not words.strip():
            continue
        # Both ends: a stack at the end of a message names what was raised.
        bounded = words if len(words) <= 16_384 else words[:8192] + "\n" + words[-8191:]
        if bounded.strip().rstrip(":").strip() not in names:
            return bounded
        fallback = fallback or bounded
    return fallback


@lru_cache(maxsize=512)
def _conclude(said: _Said) -> ForeignFault:
    words = clean(wording.plain_words(said.words))
    names = tuple(_names(said))
    status = said.status or _status_code(names)
    guessed = wording.status_in(words, names) if status is None else None
    blame = wording.blame_in(words, said.tool)
    error_type, evidence = _type_and_evidence(said, names, words, blame)
    return ForeignFault(
        error_type=redaction.name(error_type) if error_type else None,
        evidence=evidence,
        message=redaction.redact(_without_name(words, names)) or None,
        http_status=status or guessed,
        status_is_guess=guessed is not None,
        verdict=_verdict(said, names, status or guessed, words, blame),
    )


def _names(said: _Said) -> Iterator[str]:
    """Yield the names that the fault goes by, the most telling first."""
    told = [name for name in (said.error_type, said.raised) if name]
    if len(told) == 2 and _last(told[1]) == told[0]:
        del told[0]
    yield from (name for name in told if not _is_generic(name))
    if not told or _is_generic(told[-1]):
        found = (*said.causes, wording.name_in(said.words))
        yield from (name for name in found if name and not _is_generic(name))
        yield from (name for name in found if name and _is_generic(name))
    yield from (name for name in told if _is_generic(name))


def _type_and_evidence(
    said: _Said, names: tuple[str, ...], words: str, blame: str | None
) -> tuple[str | None, int]:
    if any(_last(name) in _MCP_ERRORS for name in names) and _is_timeout(words):
        return wording.TIMEOUT, IN_ATTRIBUTE
    if names and not _is_generic(names[0]):
        is_told = names[0] in (said.error_type, said.raised)
        return names[0], IN_ATTRIBUTE if is_told else READ_IN_TEXT
    if blame is not None:
        return blame, READ_IN_TEXT
    return (names[0], GENERIC_WORD) if names else (None, NO_EVIDENCE)


def _verdict(
    said: _Said, names: tuple[str, ...], status: int | None, words: str, blame: str | None
) -> Verdict:
    """Ask the shim's classifiers about whatever says most: the status, then names, then words."""
    if status is not None and 400 <= status <= 599:
        return judge_http(status, said.words)
    specific = [name for name in names if not _is_generic(name)]
    verdict = judge_names(specific)
    if blame is not None:
        return verdict if verdict.error_class is c.ErrorClass.L1_INPUT else _BLAMED[blame]
    coded = judge_code_in(words)
    if coded is not None:
        return coded
    found = wording.system_fault_in(words) if _leaves_open(specific, verdict) else None
    reported = judge_name(found) if found else verdict
    if reported.error_class is not verdict.error_class:
        return replace(reported, classifier_id="message_matcher")
    return verdict if specific else judge_names(names)


def _leaves_open(specific: list[str], verdict: Verdict) -> bool:
    """Return whether the words of the system may say more than the names do."""
    if not specific or verdict.classifier_id in _DIRECTIONS:
        return True
    return _last(specific[0]) in _MCP_ERRORS | _OF_THE_SYSTEM


def _is_generic(name: str | None) -> bool:
    return name is None or _last(name) in _GENERIC


def _is_timeout(words: str) -> bool:
    return wording.system_fault_in(words) == "TimeoutError"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _status_code(names: tuple[str, ...]) -> int | None:
    """Return a status that serves as ``error.type``, as HTTP instrumentations do."""
    return next((int(n) for n in names if len(n) == 3 and n.isdecimal() and n[0] in "45"), None)


def _without_name(words: str, names: tuple[str, ...]) -> str:
    """Return a message without the type in front of it, which has a column of its own."""
    head, _, rest = words.partition(":")
    return rest.strip() if head in {*names, *map(_last, names)} else words
