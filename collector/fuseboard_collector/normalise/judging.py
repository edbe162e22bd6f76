"""The shim's verdict on a fault of which only names, codes and a status arrived.

Stand-ins of the same qualified names are put to the shim's own classifiers, so that both sides
keep one table.
"""

from __future__ import annotations

import asyncio
import builtins
import errno
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final

from fuseboard import conventions as c
from fuseboard.classification.chain import judge_exception
from fuseboard.classification.control_flow import INTERRUPTS
from fuseboard.classification.http import judge_slug, judge_status, known_slug
from fuseboard.classification.naming import known_names
from fuseboard.classification.results import MCP_IS_ERROR, PACKET
from fuseboard.classification.verdicts import input_fault, semantic_fault, unclassified_fault
from fuseboard.record import Fault, Verdict

UNCLASSIFIED: Final = unclassified_fault()

# An error that a framework reports in its own words for the tool: the tool did answer.
_FRAMEWORK: Final = semantic_fault("framework_tool_error")
_REPORTED: Final = {
    "tool_error": MCP_IS_ERROR,
    "TOOL_ERROR": PACKET,
    "AI_NoSuchToolError": input_fault("unknown_tool_matcher"),
    "ModelRetry": _FRAMEWORK,
    "ToolRetryError": _FRAMEWORK,
}
_ENDINGS: Final = {
    **{
        name.rpartition(".")[2]: c.Outcome.INTERRUPTED
        for name in INTERRUPTS
        if not name.endswith(".ModelRetry")
    },
    "AbortError": c.Outcome.CANCELLED,  # JavaScript's
    "Cancelled": c.Outcome.CANCELLED,
    "CancelledError": c.Outcome.CANCELLED,
    "GeneratorExit": c.Outcome.ABANDONED,
    "KeyboardInterrupt": c.Outcome.CANCELLED,
}
# Exceptions of API clients that are named after the status that they stand for.
_STATUS_NAMES: Final = {
    "BadRequestError": 400, "InvalidArgument": 400, "AuthenticationError": 401,
    "UnauthorizedError": 401, "Unauthenticated": 401, "PermissionDenied": 403,
    "PermissionDeniedError": 403, "ForbiddenError": 403, "NotFoundError": 404,
    "ConflictError": 409, "UnprocessableEntityError": 422, "RateLimitError": 429,
    "RateLimitExceeded": 429, "ResourceExhausted": 429, "ThrottlingException": 429,
    "TooManyRequests": 429, "TooManyRequestsError": 429, "InternalServerError": 500,
    "BadGateway": 502, "ServiceUnavailable": 503, "ServiceUnavailableError": 503,
    "DeadlineExceeded": 504, "OverloadedError": 529,
}  # fmt: skip
# Called so by more than the libraries that are known here: JavaScript's own, for example.
_ANYBODYS: Final = frozenset(
    {"CancelledError", "Empty", "Error", "Full", "Invalid", "OperationalError", "error"}
)
# To the shim such an error without a status is a redirect; here the status is not told.
_NEEDS_STATUS: Final = frozenset({"HTTPStatusError"})
_PYTHONS: Final = (builtins, ssl, socket, subprocess, asyncio)
_TIMEOUT_NAME: Final = re.compile(r"timed?[-_ ]?out", re.IGNORECASE)
_CONNECTION_NAME: Final = re.compile(r"Connect(ion)?(Error|Exception)\Z")
_VALIDATION_NAME: Final = re.compile(r"Validation(Error|Exception)\Z|InvalidToolInput")
_SCHEMA_ERROR: Final = "pydantic_core._pydantic_core.ValidationError"
_NODE_RESOLVER: Final = {"ENOTFOUND": socket.EAI_NONAME, "EAI_AGAIN": socket.EAI_AGAIN}
_SLUG_IN_TEXT: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def ending_of(error_type: str | None) -> c.Outcome:
    """Return the outcome of a call that its span calls failed.

    What the shim takes for control flow is none of the tool's faults here, either: cancellation
    by the caller, a pause for a human, a hand-over. Asking the model again (``ModelRetry``) is a
    fault here, because a span of another instrumentation is all there is of that call.

    Args:
        error_type: Class name, qualified or bare; None if it is unknown.
    """
    return _ENDINGS.get((error_type or "").rpartition(".")[2], c.Outcome.ERROR)


def judge_names(names: Iterable[str]) -> Verdict:
    """Return the verdict of the first name that has one.

    Args:
        names: Class names or codes, the most telling first.
    """
    for name in names:
        verdict = judge_name(name)
        if verdict.error_class is not c.ErrorClass.UNCLASSIFIED:
            return verdict
    return UNCLASSIFIED


def judge_http(status: int, message: str) -> Verdict:
    """Return the verdict on an HTTP status, of which the message may tell a used-up quota.

    Args:
        status: 400 to 599.
        message: The words of the fault.
    """
    return judge_status(status, known_slug(_SLUG_IN_TEXT.findall(message)))


def judge_code_in(message: str) -> Verdict | None:
    """Return the verdict on an API's own code for an error that a message quotes, if it is known.

    Args:
        message: The words of the fault: ``{'code': 'insufficient_quota'}``.
    """
    return judge_slug(known_slug(_SLUG_IN_TEXT.findall(message)))


@lru_cache(maxsize=1024)
def judge_name(name: str) -> Verdict:
    """Return the shim's verdict on a fault of which only a name is known.

    Args:
        name: Class name, qualified or bare, or a code: JSON-RPC, gRPC, errno, an API's own.
    """
    return _judge_code(name) or _judge_class(name) or UNCLASSIFIED


def _judge_code(name: str) -> Verdict | None:
    if name.lstrip("-").isdecimal() and name.isascii() and len(name) < 8:
        return _judge_number(int(name))
    number = getattr(errno, name, None) if name.isupper() else None
    if isinstance(number, int):
        return _ask(OSError(number, name))
    if name in _NODE_RESOLVER:
        return _ask(socket.gaierror(_NODE_RESOLVER[name], name))
    if name.isupper():
        return _ask(_stand_in("grpc.RpcError", Exception, _grpc(name)))
    return judge_slug(name)


def _judge_number(code: int) -> Verdict | None:
    if 400 <= code <= 599:
        return judge_status(code)
    error = SimpleNamespace(code=code, data=None)
    return _ask(_stand_in("mcp.shared.exceptions.McpError", Exception, {"error": error}))


def _grpc(name: str) -> dict[str, Any]:
    return {"code": lambda _: SimpleNamespace(name=name), "details": lambda _: ""}


def _judge_class(name: str) -> Verdict | None:
    last = name.rpartition(".")[2]
    if last in _NEEDS_STATUS:
        return None
    verdict = _ask(_stand_in(name, _base_of(name)))
    if verdict is None and name == last and name not in _ANYBODYS:
        verdict = _judge_bare(name)
    if verdict is None and _VALIDATION_NAME.search(last):
        return _ask(_stand_in(_SCHEMA_ERROR, Exception))
    if verdict is None and last in _STATUS_NAMES:
        return judge_status(_STATUS_NAMES[last])
    return verdict or _REPORTED.get(last)


def _judge_bare(name: str) -> Verdict | None:
    """Judge a class of which the module is missing, if all of that name have one error class."""
    found = [_ask(_stand_in(full, _base_of(full))) for full in _by_last_part().get(name, ())]
    classes = {verdict.error_class if verdict else None for verdict in found}
    return found[0] if len(classes) == 1 else None


@lru_cache(maxsize=1)
def _by_last_part() -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for full in sorted(known_names()):
        index.setdefault(full.rpartition(".")[2], []).append(full)
    return index


def _base_of(name: str) -> type[Exception]:
    """Return what a class of this name is, or is likely to be derived from."""
    module, _, last = name.rpartition(".")
    # Nothing is imported because a sender names it.
    is_pythons = module.partition(".")[0] in sys.stdlib_module_names
    modules = _PYTHONS if not module else (sys.modules.get(module),) if is_pythons else ()
    known = next((found for home in modules if (found := getattr(home, last, None))), None)
    if isinstance(known, type) and issubclass(known, Exception):
        return known
    if _TIMEOUT_NAME.search(last):
        return TimeoutError
    return ConnectionError if _CONNECTION_NAME.search(last) else Exception


def _stand_in(
    name: str, base: type[Exception], namespace: dict[str, Any] | None = None
) -> Exception:
    module, _, last = name.rpartition(".")
    given = {"__module__": module or "builtins", **(namespace or {})}
    cls: Any = type(last or "Unknown", (base,), given)
    error: Exception = cls.__new__(cls)
    return error


def _ask(error: Exception) -> Verdict | None:
    judged = judge_exception(error, 0.0)
    if not isinstance(judged, Fault):
        return None
    verdict = judged.verdict
    return verdict if verdict.error_class is not c.ErrorClass.UNCLASSIFIED else None
