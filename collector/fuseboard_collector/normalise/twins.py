"""Two instrumentations in one process see each call twice, neither span above the other.

Calls made at the same time must stay apart, so each call that the one tells of needs exactly one
of the other, at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseboard import conventions as c
from fuseboard_collector.normalise.lineage import Group

# How far apart two spans around one call may start: what the instrumentation in between costs.
_NEAR = 2_000
_NEAR_IF_IDENTIFIED = 50_000
# Instrumentations of one tool that later ones are held against; scopes are the sender's choice,
# and holding thousands against each other would take minutes.
_MOST_SCOPES = 8

_Key = Callable[[Group], Any]


def join_twins(groups: list[Group]) -> list[Group]:
    """Return groups, those of one call joined: our own beats others, an earlier one a later one.

    Args:
        groups: Those of a trace.
    """
    if len(groups) < 2:
        return groups
    tools: dict[str, dict[str, list[Group]]] = {}
    for group in groups:
        tools.setdefault(group.tool, {}).setdefault(_scope(group), []).append(group)
    joined: set[int] = set()
    for scopes in tools.values():
        if len(scopes) > 1:
            _join(list(scopes.values()), joined)
    return [group for group in groups if id(group) not in joined] if joined else groups


def _join(scopes: list[list[Group]], joined: set[int]) -> None:
    """Join each scope's groups to those of the first that tells of the same calls."""
    scopes.sort(key=lambda groups: min(map(_order, groups)))
    for number, later in enumerate(scopes):
        for earlier in scopes[: min(number, _MOST_SCOPES)]:
            if id(earlier[0]) in joined or len(earlier) != len(later):
                continue
            pairs = _pairs(earlier, later)
            if pairs:
                joined.update(_absorb(*pair) for pair in pairs)
                break


def _pairs(earlier: Sequence[Group], later: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Pair groups by what identifies their calls, else by time; none unless all fit."""
    for identity in (_call_id, _args_hash, _failed):
        if any(identity(group) is None for group in (*earlier, *later)):
            continue
        pairs = _sorted_pairs(earlier, later, identity)
        if all(identity(one) == identity(other) for one, other in pairs):
            near = _NEAR if identity is _failed else _NEAR_IF_IDENTIFIED
            return pairs if _are_near(pairs, near) else []
        if identity is _call_id:
            return []
    pairs = _sorted_pairs(earlier, later, lambda _: 0)
    return pairs if _are_near(pairs, _NEAR) else []


def _sorted_pairs(
    earlier: Sequence[Group], later: Sequence[Group], identity: _Key
) -> list[tuple[Group, Group]]:
    def key(group: Group) -> tuple[Any, tuple[int, int, str]]:
        return identity(group), _order(group)

    return list(zip(sorted(earlier, key=key), sorted(later, key=key), strict=True))


def _are_near(pairs: list[tuple[Group, Group]], near: int) -> bool:
    """Return whether all pairs overlap and most start together; a busy machine may part some."""
    count = 0
    for one, other in pairs:
        (start, end), (other_start, other_end) = _times(one), _times(other)
        if start > other_end or other_start > end:
            return False
        count += abs(start - other_start) <= near
    return 2 * count > len(pairs)


def _absorb(one: Group, other: Group) -> int:
    """Let one group stand for both; return what identifies the other, which is done with."""
    if other.own is not None:
        one.own = other.own
    one.seen += other.seen
    one.lines += other.lines
    return id(other)


def _scope(group: Group) -> str:
    if group.own is not None:
        return c.SCOPE_NAME
    return group.seen[0].sighting.instrumentation or ""


def _times(group: Group) -> tuple[int, int]:
    outermost = group.own or group.seen[0]
    return outermost.start, outermost.end


def _order(group: Group) -> tuple[int, int, str]:
    start, end = _times(group)
    outermost = group.own or group.seen[0].sighting
    return start, -end, outermost.span_id


def _call_id(group: Group) -> str | None:
    return group.seen[0].sighting.call_id if group.seen else None


def _args_hash(group: Group) -> str | None:
    return group.seen[0].sighting.args_hash if group.seen else None


def _failed(group: Group) -> bool | None:
    return any(seen.sighting.failed for seen in group.seen) if group.own is None else None
