"""What changed: the slices of calls that explain a rise in errors, retries or slow calls.

Each slice is scored by how much likelier its numbers are with two rates, before and now, than with
one: the log likelihood ratio of two Poisson counts (half the G of a G-test), as in scan statistics
(Kulldorff 1997). What holds more than the cause has more calls that did not change, what holds less
misses events: both score lower than the cause. Few calls before prove little: a slice counts as if
it had had some more, at the rate of its tool. What holds several causes can score higher than each
of them: it is given up where its parts together tell more. The best slice is taken, what it
explains is taken out, and the rest is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fuseboard_dashboard.language import later
from fuseboard_dashboard.slices import (
    CLASS,
    LEAST_EVENTS,
    Cells,
    Counted,
    Numbers,
    Slice,
    Slicing,
    slicings,
)

MOST: Final = 6
"""Slices told of one measure."""

CONFIDENCE: Final = 2.0
"""How far a sure score is above what the best of as many slices reaches by chance, in nats."""

ALONE: Final = 1.0
"""Prior calls that keep a rate of nothing from being nothing, and tell nothing else."""

LEAST_SCORE: Final = 3.0
"""What scores less is not worth a look."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What may rise.

    Attributes:
        id: Stable name.
        noun: What is counted, in words of the viewer's language when called.
        events: Column of the events; their number before is in ``<column>_before``.
        base: Column of the calls that they are divided by.
        has_classes: Whether the events have error classes.
    """

    id: str
    noun: Callable[[], str]
    events: str
    base: str
    has_classes: bool = False


MEASURES: Final = (
    Measure("errors", later("errors"), "errors", "judged", has_classes=True),
    Measure("retries", later("retried calls"), "retried", "attempted"),
    Measure("slow", later("slow calls"), "slow", "calls"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A slice whose rate rose.

    Attributes:
        measure: Of what.
        where: Dimension → value; what all calls of the slice share.
        calls: Calls of the window that rates are of; weighted.
        events: Events of the window.
        before: Rate in the window before; None where it had no calls.
        expected: Events if the rate had stayed.
        share: Of all the events that the window has too many, 0 to 1.
        score: Log likelihood ratio, in nats.
        mostly: The class that most of the errors have; None for other measures.
        is_sure: Whether chance hardly makes such a difference anywhere among all slices.
    """

    measure: Measure
    where: dict[str, str]
    calls: float
    events: float
    before: float | None
    expected: float
    share: float
    score: float
    mostly: str | None
    is_sure: bool

    @property
    def rate(self) -> float:
        """Return events over calls in the window."""
        return self.events / self.calls

    @property
    def excess(self) -> float:
        """Return how many events there are too many."""
        return self.events - self.expected


def changes(cells: Cells, measure: Measure, most: int = MOST) -> list[Change]:
    """Return the slices that explain a rise, best first.

    Args:
        cells: Of the window and the one before.
        measure: What may have risen.
        most: How many at most.
    """
    if not len(cells):
        return []
    names = (measure.base, f"{measure.base}_before", measure.events, f"{measure.events}_before")
    counted = Counted(cells, *map(cells.column, names))
    ways = list(slicings(counted, by_class=measure.has_classes))
    events = counted.events.copy()
    tried = sum(int((way.events(events) >= LEAST_EVENTS).sum()) for way in ways)
    sure = float(np.log(max(tried, 1))) + CONFIDENCE
    total = _too_many(events, ways)
    found: list[Change] = []
    while len(found) < most:
        best = max((way.best(events) for way in ways), key=lambda one: one.score)
        if best.score < LEAST_SCORE:
            break
        best = _told_best(_one_cause(best, ways, events, sure), ways, events)
        found.append(_change(cells, measure, best, total, sure=best.score >= sure))
        events[best.inside] *= best.expected / best.events
    return found


def _one_cause(best: Slice, ways: Sequence[Slicing], events: Numbers, sure: float) -> Slice:
    """Return a slice, or while its parts are sure and tell more together, the best part of it."""
    while True:
        inside = [(way, way.within(best)) for way in ways]
        # By their own calls alone: a prior of each part would count many times.
        together = max(
            float(np.maximum(way.scores(events, ALONE)[within] - sure, 0).sum())
            for way, within in inside
        )
        if together <= best.slicing.scores(events, ALONE)[best.at]:
            return best
        parts = ((way, np.where(within, way.scores(events), 0.0)) for way, within in inside)
        way, scores = max(parts, key=lambda part: float(part[1].max()))
        at = int(np.argmax(scores))
        best = way.slice(at, events, float(scores[at]))


def _told_best(best: Slice, ways: Sequence[Slicing], events: Numbers) -> Slice:
    """Return of the slices with the same calls as one the one that tells best what they are."""
    some = int(best.inside[0])
    has_class = CLASS in best.slicing.names
    equal = (
        way.slice(int(at), events, best.score)
        for way in ways
        if (CLASS in way.names) == has_class
        for at in way.place[way.cells == some]
    )
    same = [one for one in equal if (one.calls, one.events) == (best.calls, best.events)]
    return replace(same[-1], expected=best.expected) if same else best


def _too_many(events: Numbers, ways: Sequence[Slicing]) -> float:
    """Return how many events the window has too many, over the tools that have any."""
    tools = next(way for way in ways if way.names == ("tool",))
    return float(np.maximum(tools.events(events) - tools.expected, 0).sum())


def _change(cells: Cells, measure: Measure, found: Slice, total: float, *, sure: bool) -> Change:
    row = cells.frame.iloc[int(found.slicing.first[found.at])]
    before = float(found.slicing.rate_before[found.at])
    return Change(
        measure=measure,
        where={name: str(row[name]) for name in found.slicing.names},
        calls=found.calls,
        events=found.events,
        before=None if np.isnan(before) else before,
        expected=found.expected,
        share=min(1.0, (found.events - found.expected) / total) if total > 0 else 1.0,
        score=found.score,
        mostly=_mostly(cells, measure, found),
        is_sure=sure,
    )


def _mostly(cells: Cells, measure: Measure, found: Slice) -> str | None:
    if not measure.has_classes:
        return None
    by_class = cells.frame.iloc[found.inside].groupby(CLASS)[measure.events].sum()
    return str(by_class.idxmax()) if len(by_class) else None
