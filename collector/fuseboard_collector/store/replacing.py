"""What has to change in the store when a trace comes to something else than before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter

from fuseboard_collector.store.rows import Attempt, Span, ToolCall

# What arrives in a column of its own decides. Attributes come with the arrival that made the row,
# and an attempt's id stands for nothing.
_CALL_FACTS = attrgetter(*(item.name for item in fields(ToolCall) if item.name != "attributes"))
_ATTEMPT_FACTS = attrgetter(*(item.name for item in fields(Attempt) if item.name != "span_id"))
_SPAN_FACTS = attrgetter(*(item.name for item in fields(Span) if item.name != "attributes"))


@dataclass(slots=True)
class Stored:
    """Calls, attempts and spans of one trace."""

    calls: list[ToolCall] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.calls or self.attempts or self.spans)

    def span_ids(self) -> set[str]:
        """Return the ids of the spans that the rows were made of."""
        return {
            *(row.span_id for row in self.calls),
            *(row.span_id for row in self.attempts),
            *(row.span_id for row in self.spans),
        }


@dataclass(slots=True)
class Replacement:
    """Rows to delete and rows to insert; what stays as it was is in neither.

    Attributes:
        gone: Trace and span id of rows to delete, with the attempts of such calls.
    """

    gone: list[tuple[str, str]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def replace(self, before: Stored, after: Stored) -> None:
        """Add what makes ``after`` of ``before``.

        Args:
            before: What is stored of foreign spans of a trace.
            after: What is to be stored.
        """
        was, will = _by_span(before), _by_span(after)
        changed = {span_id for span_id in was | will if was.get(span_id) != will.get(span_id)}
        trace_ids = [row.trace_id for row in _rows(before)]
        self.gone += [(trace_ids[0], span_id) for span_id in changed if span_id in was]
        self.calls += [call for call in after.calls if call.span_id in changed]
        self.attempts += [item for item in after.attempts if item.call_span_id in changed]
        self.spans += [span for span in after.spans if span.span_id in changed]


def _rows(stored: Stored) -> Iterable[ToolCall | Attempt | Span]:
    yield from stored.calls
    yield from stored.attempts
    yield from stored.spans


def _by_span(stored: Stored) -> dict[str, list[tuple[object, ...]]]:
    """Return the facts of all rows by the foreign span that they stand for."""
    facts: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for call in stored.calls:
        facts[call.span_id].append(_CALL_FACTS(call))
    for attempt in stored.attempts:
        facts[attempt.call_span_id].append(_ATTEMPT_FACTS(attempt))
    for span in stored.spans:
        facts[span.span_id].append(_SPAN_FACTS(span))
    for rows in facts.values():
        rows.sort(key=repr)
    return facts
