"""What can be read out of the words of a fault: names, causes, HTTP statuses, who is to blame.

Words are a last resort. Only phrases are known here that systems and frameworks write
themselves; what a tool says in its own words tells nothing reliable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from fuseboard_collector.normalise.literals import literal

INVALID_ARGUMENTS: Final = "invalid_arguments"
UNKNOWN_TOOL: Final = "unknown_tool"
TIMEOUT: Final = "timeout"

MAX_WORDS: Final = 4096
"""Characters of a message that are looked at for names and stacks."""
MAX_PLAIN: Final = 1024
"""Characters of its own words: twice what is stored. More would cost milliseconds a message."""

_NAME: Final = r"[A-Za-z_][\w.]{0,200}"
_STACK: Final = re.compile(
    r"Traceback \(most recent call last\)|\n[ \t]*+File \"[^\"\n]++\", line \d+"
    r"|\n[ \t]++at [^\n]+:\d+"
)
_BY_FRAMEWORK: Final = re.compile(
    r"Error (?:calling|executing|running) tool (?:\(non-fatal\)|'[^']{1,256}'|[\w.-]{1,256}): "
)
_LEADING_NAME: Final = re.compile(
    rf"\s*({_NAME}(?:Error|Exception|Timeout|Exceeded|Interrupt))\s*(?:[:(]|\Z)"
)
_RAISED_REPR: Final = re.compile(rf"\s*({_NAME})\((.*)\)\s*\Z", re.DOTALL)
_CAUSED: Final = "The above exception was the direct cause of the following exception:"
_MEANWHILE: Final = "During handling of the above exception, another exception occurred:"
_LAST_FRAME: Final = re.compile(r"\n[ \t]*+File \"[^\"\n]++\", line \d+[^\n]*")
_RAISED_LINE: Final = re.compile(rf"^({_NAME})(?::|$)", re.MULTILINE)

_STATUS: Final = re.compile(r"\b([45]\d\d)\b")
_NAMED_STATUS: Final = re.compile(
    r"\b(?:HTTP(?:/\d(?:\.\d)?)?(?: error)?|status(?:[ _]?code)?|error code)"
    r" {0,2}[:=]? {0,2}([45]\d\d)\b",
    re.IGNORECASE,
)
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_STATUS_OF_PHRASE: Final = {
    status.phrase.lower(): status.value for status in HTTPStatus if status.value >= 400
}
_HTTP_TYPE: Final = re.compile(r"HTTP|Status|API", re.IGNORECASE)

_REFUSED_ARGUMENTS: Final = re.compile(
    r"\b\d+ validation errors? for |\b[Aa]rguments validation failed"
    r"|\b[Vv]alidation failed for input parameters|\b[Ii]nvalid (?:input|arguments?) for tool\b"
    r"|mandatory input parameters are not present|\bmissing a required argument: '"
    r"|\bInput validation error: "
)
_BAD_BINDING: Final = re.compile(
    r"\b(\w{1,256}+)\(\) (?:missing \d+ required|got an unexpected keyword argument"
    r"|got multiple values for argument|takes \d+ positional)"
)
_NO_SUCH_TOOL: Final = re.compile(
    r"\b[Uu]nknown tool\b|\bno tool with that name\b|\b[Tt]ool ['\"`]?[\w.-]{1,256}+['\"`]? "
    r"(?:was )?(?:not found|does not exist|is not a valid tool)"
    r"|\bis not a valid tool, try one of"
)
# Of operating systems, resolvers and TLS libraries → the exception that Python has for it.
_SYSTEM_PHRASES: Final = {
    "timed out": "TimeoutError",
    "timed-out": "TimeoutError",
    "deadline exceeded": "TimeoutError",
    "etimedout": "TimeoutError",
    "connection reset": "ECONNRESET",
    "connection was reset": "ECONNRESET",
    "socket hang up": "ECONNRESET",
    "econnreset": "ECONNRESET",
    "connection refused": "ECONNREFUSED",
    "econnrefused": "ECONNREFUSED",
    "broken pipe": "EPIPE",
    "temporary failure in name resolution": "EAI_AGAIN",
    "eai_again": "EAI_AGAIN",
    "name or service not known": "ENOTFOUND",
    "enotfound": "ENOTFOUND",
    "certificate verify failed": "ssl.SSLCertVerificationError",
    "certificate has expired": "ssl.SSLCertVerificationError",
}


def plain_words(text: str) -> str:
    """Return the words of a message: no stack, no wrapping in a dictionary or an exception's repr.

    Args:
        text: A message of any length.

    Returns:
        At most ``MAX_PLAIN`` characters.
    """
    text = text[: 2 * MAX_WORDS]
    found = _STACK.search(text)
    words = (text[: found.start()] if found else text).strip()
    if words[-1:] == "}":
        words = _inside_dictionary(words) or words
    elif words[-1:] == ")":
        words = _inside_repr(words) or words
    return words[:MAX_PLAIN]


def _inside_dictionary(words: str) -> str | None:
    """Return the innermost text of what OpenAI Agents say: ``{'message', 'data': {'error'}}``."""
    start = words.find("{")
    if start > 64 or ('"error"' not in words and "'error'" not in words):
        return None
    packet = _value(words[start:])
    for _ in range(4):
        if not isinstance(packet, Mapping):
            break
        packet = packet.get("data") or packet.get("error") or packet.get("message")
    return packet if isinstance(packet, str) else None


def _inside_repr(words: str) -> str | None:
    """Return the text in an exception's repr: ``ValueError('no such id')``."""
    found = _RAISED_REPR.match(words)
    if found is None or not found.group(1).rpartition(".")[2][:1].isupper():
        return None
    content = _value(found.group(2))
    return content if isinstance(content, str) else None


def _value(text: str) -> object:
    if len(text) > MAX_WORDS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    return literal(text, MAX_WORDS)


def name_in(text: str) -> str | None:
    """Return the name of the exception that a message begins with, or that its stack ends with.

    Args:
        text: A message as it came, with whatever its sender appended.
    """
    head = text[:MAX_WORDS]
    found = _STACK.search(head)
    if found is not None:
        raised = raised_at_end(text)
        if raised is not None:
            return raised
        # What precedes a stack is the repr of an exception, whatever the class is called.
        head = head[: found.start()]
        whole = _RAISED_REPR.match(head)
        if whole is not None:
            return whole.group(1)
    prefix = _BY_FRAMEWORK.match(head)
    named = _LEADING_NAME.match(head, prefix.end() if prefix else 0)
    return named.group(1) if named else None


def raised_at_end(stack: str) -> str | None:
    """Return the qualified name of the exception whose stack a text ends with."""
    tail = stack[-2 * MAX_WORDS :]
    frames = [found.end() for found in _LAST_FRAME.finditer(tail)]
    raised = _RAISED_LINE.search(tail, frames[-1]) if frames else None
    return raised.group(1) if raised else None


def causes_in(stack: str) -> list[str]:
    """Return the exceptions that the one a Python stack ends with was raised from, nearest first.

    Args:
        stack: A stack with its causes, as Python prints it.
    """
    blocks = stack[-16 * MAX_WORDS :].split(_CAUSED)
    causes = []
    for index in range(len(blocks) - 2, -1, -1):
        # An exception that was only met on the way is no cause: the chain ends there.
        if _MEANWHILE in blocks[index + 1]:
            break
        raised = raised_at_end(blocks[index])
        if raised is None:
            break
        causes.append(raised)
    return causes[:8]


def status_in(message: str, names: tuple[str, ...]) -> int | None:
    """Read an HTTP status out of a message; a guess, however good.

    Args:
        message: The words of a fault.
        names: What the fault is called; a number alone counts only in an HTTP client's error.
    """
    is_http = any(_HTTP_TYPE.search(name.rpartition(".")[2]) for name in names)
    if is_http and message.lower() in _STATUS_OF_PHRASE:
        return _STATUS_OF_PHRASE[message.lower()]
    named = _NAMED_STATUS.search(message)
    if named is not None:
        return int(named.group(1))
    for found in _STATUS.finditer(message):
        phrase = _PHRASES.get(int(found.group(1)))
        if is_http or (phrase and message.startswith(phrase, found.end() + 1)):
            return int(found.group(1))
    return None


def blame_in(message: str, tool: str) -> str | None:
    """Tell a call that never reached the tool: ``invalid_arguments``, ``unknown_tool``, or None.

    Args:
        message: The words of a fault.
        tool: The tool's name.
    """
    if _NO_SUCH_TOOL.search(message):
        return UNKNOWN_TOOL
    if _REFUSED_ARGUMENTS.search(message):
        return INVALID_ARGUMENTS
    binding = _BAD_BINDING.search(message)
    return INVALID_ARGUMENTS if binding and binding.group(1) == tool else None


def system_fault_in(message: str) -> str | None:
    """Return the name of the exception for what an operating system or a resolver reported."""
    lower = message.lower()
    return next((name for phrase, name in _SYSTEM_PHRASES.items() if phrase in lower), None)
