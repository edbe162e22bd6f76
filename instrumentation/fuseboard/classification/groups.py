"""Exception groups: what counts are the leaves."""

from __future__ import annotations

from collections.abc import Iterator

from fuseboard.classification.inspecting import (
    is_a,
    message_of,
    names_of,
    probe,
    qualified_name,
)

MAX_LEAVES = 256
"""Enough for any real group; a bound, because hostile ones are without end."""

MAX_NAMED = 3
"""Leaves that the words for a group name."""

_BACKPORT = "exceptiongroup._exceptions.BaseExceptionGroup"


def is_group(error: BaseException) -> bool:
    """Tell whether an exception is a group, of Python's own or of the backport's class."""
    return is_a(error, BaseExceptionGroup) or _BACKPORT in names_of(type(error))


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions within a group, however nested, or the exception itself.

    Each object is given once, though a group may hold it twice or contain itself.
    """
    seen: set[int] = set()
    waiting = [error]
    found = 0
    while waiting and found < MAX_LEAVES:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        members = _members(current)
        if members:
            waiting.extend(reversed(members))
        else:
            found += 1
            yield current


def describe(group: BaseException, leaves: list[BaseException]) -> str:
    """Return words for a group that say what is in it, and how much.

    Args:
        group: The group, of which the text says no more than a number.
        leaves: Those of its leaves that count.
    """
    named = [f"{qualified_name(type(leaf))}: {message_of(leaf)}" for leaf in leaves[:MAX_NAMED]]
    if len(leaves) > MAX_NAMED:
        named.append(f"and {len(leaves) - MAX_NAMED} more")
    count = f"{len(leaves)} faults: " if len(leaves) > 1 else ""
    return f"{message_of(group)}: {count}{'; '.join(named)}"


def _members(error: BaseException) -> list[BaseException]:
    if not is_group(error):
        return []
    members = probe(error, "exceptions")
    if not isinstance(members, tuple | list):
        return []
    return [member for member in members[:MAX_LEAVES] if is_a(member, BaseException)]
