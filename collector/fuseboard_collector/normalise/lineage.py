"""Who stands above whom in a trace, and which spans thereby tell of one call.

Spans of one tool in one line of ancestors are one call seen by several instrumentations, or on
both sides of a connection. An agent in between makes them two: the tool asked an agent, which
called the tool again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fuseboard_collector.normalise.hints import INVOKE_AGENT
from fuseboard_collector.normalise.related import Relative
from fuseboard_collector.store.rows import Sighting, micros

# Dialects that give a server's own name of a tool, where a framework may have put one before it.
_SERVER_SIDE = frozenset({"mcp", "logfire_mcp", "openllmetry"})
_SEPARATORS = frozenset("_-./:")


@dataclass(slots=True, eq=False)
class Seen:
    """A sighting, in its place.

    Attributes:
        start: Microseconds since the epoch.
        end: Microseconds since the epoch.
        inner: Sightings of the same call that are below this one and not below another.
        failed: Whether it says so, or the last of those inside; to be told once all are placed.
        status: HTTP status of the last request that was sent from here, and when it ended.
    """

    sighting: Sighting
    start: int
    end: int
    session: str | None
    agent: str | None
    failed: bool
    inner: list[Seen] = field(default_factory=list)
    status: tuple[int, int] | None = None


@dataclass(slots=True, eq=False)
class Group:
    """What tells of one execution of a tool.

    Attributes:
        seen: Those above before those below.
        lines: The outermost span of each line of ancestors.
        own: The shim's span of it, if it has one.
    """

    tool: str
    seen: list[Seen] = field(default_factory=list)
    lines: list[Seen] = field(default_factory=list)
    own: Relative | None = None


@dataclass(slots=True, eq=False)
class _Standing:
    """What a span hands down: context, and the call that it is part of, if any."""

    session: str | None
    agent: str | None
    group: Group | None
    caller: Seen | None


_Node = Sighting | Relative
_NOTHING = _Standing(None, None, None, None)


class Lineage:
    """The lines of ancestors of a trace. Cycles are cut at their earliest span."""

    def __init__(self, sightings: Iterable[Sighting], relatives: Iterable[Relative]) -> None:
        self._nodes: dict[str, _Node] = {item.span_id: item for item in relatives}
        self._nodes.update((item.span_id, item) for item in sightings)
        self._known: dict[str, _Standing] = {}
        self.groups: list[Group] = []
        nodes, known = self._nodes, self._known
        # Spans are exported when they end, the outer ones last.
        for span_id, node in reversed(nodes.items()):
            if span_id in known:
                continue
            above = node.parent_span_id
            if above is None or above not in nodes:
                known[span_id] = self._standing(node, _NOTHING)
            elif above in known:
                known[span_id] = self._standing(node, known[above])
            else:
                self._place(node)

    def parents(self, span_id: str, most: int) -> list[str]:
        """Return the ids of a span's ancestors, the nearest first.

        Args:
            span_id: The span's.
            most: How far to go up.
        """
        found: list[str] = []
        node = self._nodes.get(span_id)
        while node is not None and node.parent_span_id is not None and len(found) < most:
            found.append(node.parent_span_id)
            node = self._nodes.get(node.parent_span_id)
        return found

    def _place(self, node: _Node) -> None:
        """Place a span after its ancestors, none of which may have been placed so far."""
        nodes, known = self._nodes, self._known
        path = {node.span_id: node}
        while True:
            above = node.parent_span_id
            if above is None or above not in nodes:
                standing = _NOTHING
                break
            if above in known:
                standing = known[above]
                break
            if above in path:
                self._cut(path, above)
                for item in path.values():
                    if item.span_id not in known:
                        self._place(item)
                return
            node = nodes[above]
            path[above] = node
        for item in reversed(path.values()):
            standing = known[item.span_id] = self._standing(item, standing)

    def _cut(self, path: dict[str, _Node], again: str) -> None:
        """Let the earliest span of a cycle have no parent."""
        ids = list(path)
        cycle = [path[span_id] for span_id in ids[ids.index(again) :]]
        first = min(cycle, key=lambda node: (micros(node.start), node.span_id))
        self._known[first.span_id] = self._standing(first, _NOTHING)

    def _standing(self, node: _Node, above: _Standing) -> _Standing:
        session = node.session or above.session
        agent = node.agent or above.agent
        if isinstance(node, Sighting):
            return self._seen(node, above, session, agent)
        if node.own_tool is not None:
            return self._owned(node, above, session, agent)
        if node.http_status is not None and (caller := above.caller) is not None:
            caller.status = max(caller.status or (0, 0), (node.end, node.http_status))
        if node.operation == INVOKE_AGENT:
            return _Standing(session, agent, None, None)
        return _Standing(session, agent, above.group, above.caller)

    def _seen(
        self, node: Sighting, above: _Standing, session: str | None, agent: str | None
    ) -> _Standing:
        start = micros(node.start)
        end = start + round(node.duration_seconds * 1e6)
        seen = Seen(node, start, end, session, agent, node.failed)
        group = above.group
        if group is None or not _is_same(group, above.caller, node):
            group = Group(node.tool)
            self.groups.append(group)
        if above.caller is not None and group is above.group:
            above.caller.inner.append(seen)
        else:
            group.lines.append(seen)
        group.seen.append(seen)
        return _Standing(session, agent, group, seen)

    def _owned(
        self, node: Relative, above: _Standing, session: str | None, agent: str | None
    ) -> _Standing:
        group = above.group
        if group is None or above.caller is None or group.tool != node.own_tool:
            # Calls of our own within each other are calls of their own.
            group = Group(node.own_tool or "")
            self.groups.append(group)
        if group.own is None or _earlier(node, group.own):
            group.own = node
        return _Standing(session, agent, group, None)


def _earlier(one: Relative, other: Relative) -> bool:
    return (one.start, -one.end, one.span_id) < (other.start, -other.end, other.span_id)


def _is_same(group: Group, caller: Seen | None, node: Sighting) -> bool:
    """Return whether a sighting below a group's tells of the group's call."""
    if caller is not None:
        asked = caller.sighting.call_id
        if asked is not None and node.call_id is not None and asked != node.call_id:
            return False
    if group.tool == node.tool:
        return True
    is_prefixed = (
        node.dialect in _SERVER_SIDE
        and len(group.tool) > len(node.tool) + 1
        and group.tool.endswith(node.tool)
        and group.tool[-len(node.tool) - 1] in _SEPARATORS
    )
    if is_prefixed and group.own is None:
        group.tool = node.tool
    return is_prefixed
