"""One execution of a tool, from all the spans that tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter

from fuseboard import conventions as c
from fuseboard.classification.http import judge_status
from fuseboard_collector.normalise.lineage import Group, Seen
from fuseboard_collector.store.rows import Sighting

_UNCLASSIFIED = c.ErrorClass.UNCLASSIFIED.value
# Evidence from which on an error's type is its own, not a general word.
_TELLING = 2


@dataclass(slots=True)
class Failure:
    """What is known of a failure: of each item the best that any span tells."""

    error_type: str | None
    error_class: str | None
    classifier_id: str | None
    retryable: bool | None
    origin: str | None
    http_status: int | None
    message: str | None


@dataclass(slots=True, eq=False)
class Execution:
    """One execution of a tool.

    Attributes:
        outermost: The span that stands for it.
        spans: All that tell of it, the outermost first.
        start: Microseconds since the epoch.
        end: Microseconds since the epoch.
        failure: None if it ended well.
        tries: Executions inside of it that are its attempts; empty if it is one itself.
    """

    tool: str
    outermost: Sighting
    spans: Sequence[Seen]
    start: int
    end: int
    failure: Failure | None
    tries: list[Execution] = field(default_factory=list)

    def first(self, column: str) -> str | None:
        """Return what the outermost span that has anything in a column has there."""
        value: str | None = getattr(self.outermost, column)
        if value is None and len(self.spans) > 1:
            told = (getattr(seen.sighting, column) for seen in self.spans)
            return next((item for item in told if item is not None), None)
        return value

    @property
    def args_hash(self) -> str | None:
        """The arguments' hash; what tells only whether they are equal is none."""
        for seen in self.spans:
            found = seen.sighting.args_hash
            if found is not None and found.startswith(c.ARGS_HASH_VERSION):
                return found
        return None

    @property
    def session(self) -> str | None:
        """The session that the call belongs to, as an ancestor may say."""
        for seen in self.spans:
            if seen.session is not None:
                return seen.session
        return None

    @property
    def agent(self) -> str | None:
        """The agent that made the call, as an ancestor may say."""
        for seen in self.spans:
            if seen.agent is not None:
                return seen.agent
        return None


def execution_of(group: Group) -> Execution:
    """Return what a group's spans come to.

    Args:
        group: One without a span of our own.
    """
    seen, lines = group.seen, group.lines
    if len(seen) == 1:
        return _execution(group.tool, seen, seen[0].failed)
    for item in reversed(seen):
        if item.inner and not item.failed:
            # Its instrumentation doesn't know, or what failed inside was tried again.
            item.failed = max(item.inner, key=lambda inner: (inner.end, _order(inner))).failed
    # Of two instrumentations always the same one, so that attempts stay under one parent.
    outermost = lines[0]
    inside = sorted((item for item in seen if item is not outermost), key=_order)
    found = _execution(group.tool, [outermost, *inside], any(line.failed for line in lines))
    if len(lines) == 1:
        found.tries = _tries(group.tool, outermost)
    return found


def _order(seen: Seen) -> tuple[int, int, str]:
    return seen.start, -seen.end, seen.sighting.span_id


def _execution(tool: str, spans: Sequence[Seen], failed: bool) -> Execution:
    outermost = spans[0]
    return Execution(
        tool,
        outermost.sighting,
        spans,
        outermost.start,
        outermost.end,
        _failure(spans) if failed else None,
    )


def _tries(tool: str, outermost: Seen) -> list[Execution]:
    """Return the attempts below the outermost span: each after one that failed; else none."""
    node = outermost
    while len(node.inner) == 1:
        node = node.inner[0]
    tries = sorted(node.inner, key=_order)
    for earlier, later in pairwise(tries):
        if not earlier.failed or later.start < earlier.end:
            return []
    if tries and tries[-1].failed != outermost.failed:
        return []  # What failed came after them.
    return [_execution(tool, _below(item), item.failed) for item in tries]


def _below(outermost: Seen) -> list[Seen]:
    found = [outermost]
    for item in found:
        found += item.inner
    return found


def _failure(spans: Sequence[Seen]) -> Failure:
    told = [seen.sighting for seen in spans if seen.sighting.failed]
    best = max(told, key=attrgetter("evidence"))
    judged = best
    if best.error_class == _UNCLASSIFIED and len(told) > 1:
        judged = next((item for item in told if item.error_class != _UNCLASSIFIED), best)
    failure = Failure(
        best.error_type,
        judged.error_class,
        judged.classifier_id,
        judged.retryable,
        judged.origin,
        next((item.http_status for item in (best, *told) if item.http_status is not None), None),
        next((item.error_message for item in (best, *told) if item.error_message), None),
    )
    if failure.http_status is None:
        _add_status(failure, best.evidence, spans)
    return failure


def _add_status(failure: Failure, evidence: int, spans: Sequence[Seen]) -> None:
    """Let the last request that a call sent say what went wrong, where nothing else does."""
    if evidence >= _TELLING and failure.error_class != _UNCLASSIFIED:
        return
    _, status = max((seen.status for seen in spans if seen.status is not None), default=(0, 0))
    if status < 400:
        return
    verdict = judge_status(status)
    failure.http_status = status
    failure.error_class = verdict.error_class.value
    failure.classifier_id = verdict.classifier_id
    failure.retryable = verdict.retryable
    failure.origin = verdict.origin.value
