"""What changed: the slices of calls that explain a rise in errors, retries or slow calls.

A slice is all calls that share a few values: a tool, a tool in a region, one argument hash there.
Each is scored by how much likelier its numbers are with two rates, before and now, than with one:
the log likelihood ratio of two Poisson counts (half the G of a G-test), as in scan statistics
(Kulldorff 1997). What holds more than the cause has more calls that did not change, what holds less
misses events: both score lower than the cause. Few calls before prove little: a slice counts as if
it had had some more, at the rate of its tool. The best slice is taken, what it explains is taken
out, and the rest is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

Numbers = npt.NDArray[np.float64]

MOST: Final = 6
"""Slices told of one measure."""

PRIOR_CALLS: Final = 200.0
"""So many more a slice is taken to have had before, at the rate around it."""

LEAST_EVENTS: Final = 3.0
LEAST_GROWTH: Final = 1.3
CONFIDENCE: Final = 2.0
"""How far a sure score is above what the best of as many slices reaches by chance, in nats."""

LEAST_SCORE: Final = 3.0
"""What scores less is not worth a look."""

DIMENSIONS: Final = ("tool", "region", "agent", "service", "upstream", "args_hash", "error_class")

DESCRIPTIONS: Final[tuple[tuple[str, ...], ...]] = (
    ("service",), ("agent",), ("upstream",), ("region", "upstream"),
    ("upstream", "error_class"), ("agent", "error_class"), ("error_class",),
    ("region", "error_class"), ("tool", "error_class"), ("tool", "region", "error_class"),
    ("tool", "args_hash", "error_class"), ("tool", "region", "args_hash", "error_class"),
    ("tool", "service"), ("tool", "agent"), ("tool", "upstream"), ("tool", "region", "agent"),
    ("tool",), ("region",), ("tool", "region"), ("tool", "args_hash"),
    ("tool", "region", "args_hash"),
)  # fmt: skip
"""By which values calls are sliced; of slices that hold the same calls the last tells best."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What may rise.

    Attributes:
        id: Stable name.
        noun: What is counted, in words.
        events: Column of the events; their number before is in ``<column>_before``.
        base: Column of the calls that they are divided by.
    """

    id: str
    noun: str
    events: str
    base: str


MEASURES: Final = (
    Measure("errors", "errors", "errors", "judged"),
    Measure("retries", "retried calls", "retried", "attempted"),
    Measure("slow", "slow calls", "slow", "calls"),
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


@dataclass(frozen=True, slots=True)
class _Slicing:
    """Calls sliced one way.

    Attributes:
        place: Number of the slice of each cell of ``cells``.
        size: How many slices there are.
        first: A cell of each slice.
        calls: Of each slice in the window.
        calls_before: In the window before, with those it is taken to have had.
        events_before: Likewise.
        rate_before: As it really was; NaN without calls.
        cells: Numbers of the cells that have these values at all.
    """

    names: tuple[str, ...]
    place: npt.NDArray[np.intp]
    size: int
    first: npt.NDArray[np.intp]
    calls: Numbers
    calls_before: Numbers
    events_before: Numbers
    rate_before: Numbers
    cells: npt.NDArray[np.intp]

    def events(self, of_cells: Numbers) -> Numbers:
        """Add up a number of each cell by slice."""
        return np.bincount(self.place, of_cells[self.cells], self.size)

    @property
    def expected(self) -> Numbers:
        """Return how many events there would be if rates had stayed."""
        return self.calls * self.events_before / self.calls_before

    def best(self, of_cells: Numbers) -> _Slice:
        """Return the slice with the highest score."""
        scores = self.scores(self.events(of_cells))
        at = int(np.argmax(scores))
        return self.slice(at, of_cells, float(scores[at]))

    def slice(self, at: int, of_cells: Numbers, score: float = 0.0) -> _Slice:
        """Return one slice by its number."""
        inside = self.cells[self.place == at]
        return _Slice(
            self, at, inside, float(self.calls[at]), float(of_cells[inside].sum()),
            float(self.expected[at]), score,
        )  # fmt: skip

    def scores(self, events: Numbers) -> Numbers:
        """Return the log likelihood ratio of two rates against one, 0 where they did not rise."""
        pooled = (events + self.events_before) / (self.calls + self.calls_before)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = events * np.log(events / (self.calls * pooled)) + self.events_before * np.log(
                self.events_before / (self.calls_before * pooled)
            )
        rose = (events >= LEAST_EVENTS) & (events > LEAST_GROWTH * self.expected)
        return np.where(rose & np.isfinite(score), score, 0.0)


@dataclass(frozen=True, slots=True)
class _Slice:
    """One slice: its number in its slicing, its cells, and what happened there."""

    slicing: _Slicing
    at: int
    inside: npt.NDArray[np.intp]
    calls: float
    events: float
    expected: float
    score: float


def changes(cells: pd.DataFrame, measure: Measure, most: int = MOST) -> list[Change]:
    """Return the slices that explain a rise, best first.

    Args:
        cells: Rows of ``page_changes``.
        measure: What may have risen.
        most: How many at most.
    """
    if not len(cells):
        return []
    events = cells[measure.events].to_numpy(float).copy()
    slicings = list(_slicings(cells, measure))
    tried = sum(int((slicing.events(events) >= LEAST_EVENTS).sum()) for slicing in slicings)
    sure = np.log(max(tried, 1)) + CONFIDENCE
    total = _too_many(events, slicings)
    found: list[Change] = []
    while len(found) < most:
        best = max((slicing.best(events) for slicing in slicings), key=lambda one: one.score)
        if best.score < LEAST_SCORE:
            break
        best = _told_best(best, slicings, events)
        found.append(_change(cells, measure, best, total, sure=bool(best.score >= sure)))
        events[best.inside] *= best.expected / best.events
    return found


def _told_best(best: _Slice, slicings: Sequence[_Slicing], events: Numbers) -> _Slice:
    """Return of the slices with the same calls as one the one that tells best what they are."""
    some = int(best.inside[0])
    equal = (
        slicing.slice(int(at), events)
        for slicing in slicings
        for at in slicing.place[slicing.cells == some]
        if ("error_class" in slicing.names) == ("error_class" in best.slicing.names)
    )
    same = [
        one for one in equal if (one.calls, one.events) == (best.calls, best.events)
    ]  # fmt: skip
    return replace(same[-1], score=best.score) if same else best


def _slicings(cells: pd.DataFrame, measure: Measure) -> Iterator[_Slicing]:
    """Yield the ways to slice in which any slice has an event in the window."""
    base = cells[measure.base].to_numpy(float)
    base_before = cells[f"{measure.base}_before"].to_numpy(float)
    events_before = cells[f"{measure.events}_before"].to_numpy(float)
    all_before = max(float(base_before.sum()), 1.0)
    overall = (float(events_before.sum()) + 0.5) / (all_before + 1.0)
    tools = _rates(cells, ["tool"], events_before, base_before, overall)
    classes = _rates(cells, ["error_class"], events_before, all_before, 1e-9)
    tool_classes = _rates(cells, ["tool", "error_class"], events_before, base_before, classes)
    for names in DESCRIPTIONS:
        if "error_class" in names and measure.events != "errors":
            continue
        present = cells[list(names)].notna().all(axis=1).to_numpy()
        inside = np.flatnonzero(present)
        if not len(inside):
            continue
        keys = cells.iloc[inside].groupby(list(names), sort=False, observed=True)
        place = keys.ngroup().to_numpy().astype(np.intp)
        size = int(place.max()) + 1
        first = np.full(size, -1, np.intp)
        first[place[::-1]] = inside[::-1]
        now, before = base[inside], base_before[inside]
        calls = np.bincount(place, now, size)
        calls_before = np.bincount(place, before, size)
        if "error_class" in names:  # a class is one of errors; its calls are all of that place
            calls, calls_before = _all_calls(cells, names, first, base, base_before)
        had = np.bincount(place, events_before[inside], size)
        rates = tool_classes if "error_class" in names else tools
        if "tool" not in names or names == ("tool",):
            around = classes[first] if "error_class" in names else overall
        else:
            around = rates[first]
        yield _Slicing(
            names, place, size, first, calls, calls_before + PRIOR_CALLS,
            had + PRIOR_CALLS * around, _ratios(had, calls_before), inside,
        )  # fmt: skip


def _ratios(part: Numbers, whole: Numbers) -> Numbers:
    """Return part over whole, NaN where there is no whole."""
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def _rates(
    cells: pd.DataFrame,
    names: Sequence[str],
    events: Numbers,
    calls: Numbers | float,
    around: Numbers | float,
) -> Numbers:
    """Return for each cell how often there were events among what shares these values with it.

    Args:
        cells: All cells.
        names: Dimensions; of a class of errors all calls of the rest are counted.
        events: Of each cell.
        calls: Of each cell, or of everything together.
        around: The rate to begin with, of each cell or of everything.
    """
    group = cells.groupby(list(names), sort=False, observed=True, dropna=False).ngroup().to_numpy()
    had = np.bincount(group, events)[group]
    if isinstance(calls, float):
        among: Numbers | float = calls
    else:
        places = [name for name in names if name != "error_class"]
        place = cells.groupby(places, sort=False, observed=True).ngroup().to_numpy()
        among = np.bincount(place, calls)[place]
    rates: Numbers = (had + PRIOR_CALLS * around) / (among + PRIOR_CALLS)
    return rates


def _all_calls(
    cells: pd.DataFrame,
    names: Sequence[str],
    first: npt.NDArray[np.intp],
    base: Numbers,
    base_before: Numbers,
) -> tuple[Numbers, Numbers]:
    """Return the calls at the places of slices by class, whatever came of them."""
    places = [name for name in names if name != "error_class"]
    if not places:
        size = len(first)
        return np.full(size, base.sum()), np.full(size, base_before.sum())
    group = cells.groupby(places, sort=False, observed=True, dropna=False).ngroup().to_numpy()
    return np.bincount(group, base)[group][first], np.bincount(group, base_before)[group][first]


def _too_many(events: Numbers, slicings: Sequence[_Slicing]) -> float:
    """Return how many events the window has too many, over the tools that have any."""
    tools = next(slicing for slicing in slicings if slicing.names == ("tool",))
    return float(np.maximum(tools.events(events) - tools.expected, 0).sum())


def _change(
    cells: pd.DataFrame, measure: Measure, found: _Slice, total: float, *, sure: bool
) -> Change:
    row = cells.iloc[int(found.slicing.first[found.at])]
    before = float(found.slicing.rate_before[found.at])
    excess = found.events - found.expected
    return Change(
        measure=measure,
        where={name: str(row[name]) for name in found.slicing.names},
        calls=found.calls,
        events=found.events,
        before=None if np.isnan(before) else before,
        expected=found.expected,
        share=min(1.0, excess / total) if total > 0 else 1.0,
        score=found.score,
        mostly=_mostly(cells, measure, found.inside),
        is_sure=sure,
    )


def _mostly(cells: pd.DataFrame, measure: Measure, inside: npt.NDArray[np.intp]) -> str | None:
    if measure.events != "errors":
        return None
    by_class = cells.iloc[inside].groupby("error_class")[measure.events].sum()
    return str(by_class.idxmax()) if len(by_class) else None
