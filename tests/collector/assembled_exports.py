"""Recorded exports in any portions → what is assembled in the end, and what it ought to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from recorded_exports import RECEIVED, Recording, recordings

from fuseboard_collector.normalise.assembly import Assembled, Trace, assemble
from fuseboard_collector.normalise.incoming import IncomingSpan, Source, Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.store.relatives import relatives_of
from fuseboard_collector.store.rows import Batch, ToolCall

Sent = tuple[Source, IncomingSpan]


class Stage:
    """Keeps what came of each trace, and what it was assembled to last."""

    def __init__(self) -> None:
        self._known: dict[str, Batch] = defaultdict(Batch)
        self.assembled: dict[str, Assembled] = {}

    def take(self, portion: Iterable[Sent]) -> None:
        """Take one request, and assemble again what it touches."""
        traces = Traces(groups=[(source, [span]) for source, span in portion])
        batch = normalise_traces(traces, RECEIVED)
        touched = set()
        for rows in (*batch.lists(), batch.all_calls()):
            for row in rows:
                trace = self._known[row.trace_id]  # type: ignore[union-attr]
                _list_of(trace, row).append(row)
                touched.add(row.trace_id)  # type: ignore[union-attr]
        for trace_id in touched:
            known = self._known[trace_id]
            relatives = relatives_of(known.calls, known.attempts, known.spans)
            self.assembled[trace_id] = assemble(Trace(trace_id, known.sightings, relatives))

    def calls(self) -> dict[str, ToolCall]:
        """Return all calls by span id."""
        every = (found.calls for found in self.assembled.values())
        return {call.span_id: call for calls in every for call in calls}

    def result(self) -> list[object]:
        """Return all that was assembled, in an order that depends on nothing else."""
        every = self.assembled.values()
        rows = [
            row for found in every for row in (*found.calls, *found.attempts, *found.spans)
        ]  # fmt: skip
        return sorted(rows, key=repr)


def _list_of(batch: Batch, row: Any) -> list[Any]:
    lists = {"ToolCall": batch.calls, "Attempt": batch.attempts, "Span": batch.spans}
    return lists.get(type(row).__name__, batch.sightings)


def sent(recording: Recording) -> list[Sent]:
    """Return a recording's spans, each with who sent it."""
    return [(source, span) for source, spans in recording.traces().groups for span in spans]


@cache
def whole(name: str) -> Stage:
    """Return what a recording comes to that is sent as it was exported."""
    stage = Stage()
    stage.take(sent(recordings()[name]))
    return stage


@dataclass
class Expected:
    """One logical call that left spans.

    Attributes:
        entries: Its attempts that left spans, in order.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def spans(self) -> set[str]:
        """All spans of the first attempt: any of them may stand for the call."""
        return spans_of(self.entries[0])

    @property
    def last(self) -> dict[str, Any]:
        """The attempt that decided."""
        return self.entries[-1]


def spans_of(entry: dict[str, Any]) -> set[str]:
    """Return the spans that an entry names."""
    return {entry["span_id"], *entry["other_span_ids"]}


def expected_of(recording: Recording) -> list[Expected]:
    """Return the logical calls that left spans; a ``kind`` says that an entry is no call."""
    calls: dict[int, Expected] = defaultdict(Expected)
    for entry in recording.expected:
        if entry["span_id"] is not None and "kind" not in entry:
            calls[entry["logical_call"]].entries.append(entry)
    return list(calls.values())


def outcomes_to_see(entry: dict[str, Any]) -> set[str]:
    """Return the outcomes that one may read from an attempt's spans.

    The words of a result (``content``) are for no normaliser to judge in general; where it does
    take them for an error, it is right. Where there is ``nothing``, nothing can be seen.
    """
    if entry["outcome_from"] in ("flag", "result"):
        return {entry["outcome"]}
    return {"ok", "error"} if entry["outcome_from"] == "content" else {"ok"}


def portions(spans: Sequence[Sent], cuts: Iterable[int]) -> Iterator[Sequence[Sent]]:
    """Cut spans into requests.

    Args:
        spans: In the order in which they are sent.
        cuts: Where requests end.
    """
    start = 0
    for cut in (*sorted({cut % (len(spans) + 1) for cut in cuts}), len(spans)):
        if cut > start:
            yield spans[start:cut]
            start = cut
