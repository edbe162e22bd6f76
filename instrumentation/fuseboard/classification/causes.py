"""Walk from the exception that the caller sees to those it was made from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from fuseboard.classification.inspecting import (
    explicit_cause,
    first_argument,
    implicit_context,
    is_a,
    names_of,
    probe,
)

MAX_LINKS = 32

# Clients that keep the reason in an attribute: urllib and urllib3, aiohttp, google.api_core.
_REASON_ATTRIBUTES = ("reason", "os_error", "cause")
_RETRY_ERRORS = frozenset({"tenacity.RetryError"})


def causes_of(
    error: BaseException, ambient: BaseException | None = None
) -> Iterator[tuple[BaseException, bool]]:
    """Yield an exception and what it came from, nearest first, each once.

    Args:
        error: The exception that the caller sees.
        ambient: What the caller was handling when the call began. It is in the context of
            everything the tool raises and says nothing about the tool.

    Yields:
        (exception, whether it was deliberately wrapped around another one).
    """
    seen = {id(ambient)} if ambient is not None else set()
    waiting = deque([error])
    while waiting and len(seen) < MAX_LINKS:
        current = waiting.popleft()
        if id(current) in seen:
            continue
        seen.add(id(current))
        wrapped = list(_wrapped_by(current))
        yield current, bool(wrapped)
        waiting.extend(wrapped)
        context = implicit_context(current)
        if context is not None:
            waiting.append(context)


def _wrapped_by(error: BaseException) -> Iterator[BaseException]:
    cause = explicit_cause(error)
    if cause is not None:
        yield cause
    for name in _REASON_ATTRIBUTES:
        reason = probe(error, name)
        if is_a(reason, BaseException):
            yield reason  # type: ignore[misc]  # narrowed by the true class, not isinstance
    # httpcore, requests and others pass the original on as their only argument.
    argument = first_argument(error)
    if is_a(argument, BaseException):
        yield argument  # type: ignore[misc]
    if not _RETRY_ERRORS.isdisjoint(names_of(type(error))):
        last = probe(error, "last_attempt")
        original = probe(last, "_exception")
        if is_a(original, BaseException):
            yield original  # type: ignore[misc]
