"""Executions of one tool → calls: a framework's retries are attempts of one call.

A model that asks again makes a new call, be it with the same words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

from fuseboard_collector.normalise.executions import Execution
from fuseboard_collector.normalise.frameworks import WITHOUT_RETRIES
from fuseboard_collector.normalise.hints import CHAT
from fuseboard_collector.normalise.lineage import Lineage
from fuseboard_collector.normalise.related import Relative

_MODEL_CALLS = frozenset({CHAT, "generate_content", "text_completion"})
# A model's call may have a span or two between itself and the span that its tools are under.
_LEVELS = 3

_Identity = tuple[str | int | None, ...]
_Entry = tuple[int, str, list[Execution]]
"""When an attempt failed that may be followed by another, its span, and the call it is of."""


class Retries:
    """Joins the executions of a trace to calls."""

    def __init__(self, lineage: Lineage, relatives: Iterable[Relative]) -> None:
        self._lineage = lineage
        self._relatives = relatives
        self._asked: dict[str, list[int]] | None = None
        self._waiting: dict[_Identity, list[_Entry]] = {}

    def calls_of(self, executions: Sequence[Execution]) -> list[list[Execution]]:
        """Return the executions of each call, in the order of time.

        Args:
            executions: Those of a trace.
        """
        if len(executions) == 1:
            return [[executions[0]]]
        calls: list[list[Execution]] = []
        ordered = sorted(executions, key=lambda item: (item.start, item.outermost.span_id))
        for execution in ordered:
            identities = list(_identities(execution))
            call = self._continued(execution, identities)
            if call is None:
                call = []
                calls.append(call)
            call.append(execution)
            if execution.failure is not None:
                entry = (execution.end, execution.outermost.span_id, call)
                for identity in identities:
                    heappush(self._waiting.setdefault(identity, []), entry)
        return calls

    def _continued(
        self, execution: Execution, identities: Sequence[_Identity]
    ) -> list[Execution] | None:
        """Return the call that an execution is a further attempt of; None if it is a new one."""
        for identity in identities:
            waiting = self._waiting.get(identity)
            while waiting and waiting[0][0] <= execution.start:
                ended, span_id, call = heappop(waiting)
                last = call[-1]
                if last.outermost.span_id != span_id or not _follows(last, execution):
                    continue
                if not self._asked_between(execution, ended):
                    return call
        return None

    def _asked_between(self, execution: Execution, ended: int) -> bool:
        """Return whether a model was asked for what to do after an attempt had failed."""
        if execution.outermost.attempt_number is not None:
            return False
        if self._asked is None:
            self._asked = self._model_calls()
        starts = self._asked.get(execution.outermost.parent_span_id or "", [])
        position = bisect_left(starts, ended)
        return position < len(starts) and starts[position] <= execution.start

    def _model_calls(self) -> dict[str, list[int]]:
        """Return when models were called, by the spans that they were called under."""
        found: dict[str, list[int]] = {}
        for relative in self._relatives:
            if relative.operation in _MODEL_CALLS:
                for parent in self._lineage.parents(relative.span_id, _LEVELS):
                    found.setdefault(parent, []).append(relative.start)
        for starts in found.values():
            starts.sort()
        return found


def _identities(execution: Execution) -> Iterator[_Identity]:
    """Yield what attempts of one call have in common, the surest first.

    Some emitters tell the model's id only of an attempt that succeeded.
    """
    span = execution.outermost
    if span.parent_span_id is None:
        return
    under = (span.parent_span_id, execution.tool)
    if span.call_id is not None:
        yield (*under, "id", span.call_id)
    if span.attempt_number is not None:
        yield (*under, "number", span.args_hash)
    elif span.args_hash is not None and span.framework not in WITHOUT_RETRIES:
        yield (*under, "arguments", span.args_hash)


def _follows(earlier: Execution, later: Execution) -> bool:
    """Return whether nothing about two executions speaks against their being attempts of a call."""
    before, after = earlier.outermost, later.outermost
    if before.call_id is not None and after.call_id is not None and before.call_id != after.call_id:
        return False
    return after.attempt_number is None or after.attempt_number > (before.attempt_number or 0)
