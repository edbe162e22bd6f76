"""What changed: the slices of calls that explain a rise in errors, retries or slow calls.

A slice is all calls that share a few values: a tool, a tool in a region, one argument hash there.
Each is scored by how much likelier its numbers are with two rates, before and now, than with one: the
log likelihood ratio of two Poisson counts (half the G of a G-test), as in scan statistics (Kulldorff
1997). What holds more than the cause has more calls that did not change, what holds less misses
events: both score lower than the cause. Few calls before prove little: a slice counts as if it had had
some more, at the rate of its tool. The best slice is taken, what it explains is taken out, and the rest
is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    ("tool",), ("region",), ("agent",), ("service",), ("upstream",), ("error_class",),
    ("tool", "region"), ("tool", "agent"), ("tool", "service"), ("tool", "upstream"),
    ("tool", "args_hash"), ("tool", "error_class"), ("region", "error_class"),
    ("upstream", "error_class"), ("agent", "error_class"), ("region", "upstream"),
    ("tool", "region", "args_hash"), ("tool", "region", "error_class"),
    ("tool", "region", "agent"), ("tool", "args_hash", "error_class"),
    ("tool", "region", "args_hash", "error_class"),
)  # fmt: skip
"""By which values calls are sliced; of slices that hold the same calls the later tells more."""


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
    """Calls sliced one way: the slice of each cell, and what does not depend on what is explained."""

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

    def scores(self, events: Numbers) -> Numbers:
        """Return the log likelihood ratio of two rates against one, 0 where they did not rise."""
        pooled = (events + self.events_before) / (self.calls + self.calls_before)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = events * np.log(events / (self.calls * pooled)) + self.events_before * np.log(
                self.events_before / (self.calls_before * pooled)
            )
        rose = (events >= LEAST_EVENTS) & (events > LEAST_GROWTH * self.expected)
        return np.where(rose & np.isfinite(score), score, 0.0)


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
    found: list[Change] = []
    total = 0.0
    while len(found) < most:
        best: tuple[float, _Slicing, int, float, float] | None = None
        for slicing in slicings:
            mine = slicing.events(events)
            score = slicing.scores(mine)
            at = int(np.argmax(score))
            # Of slices with the same calls scores differ by rounding alone.
            if best is None or score[at] >= best[0] * (1 - 1e-9):
                best = (float(score[at]), slicing, at, float(mine[at]), float(slicing.expected[at]))
        if best is None or best[0] < LEAST_SCORE:
            break
        score, slicing, at, mine_there, expected_there = best
        inside = slicing.cells[slicing.place == at]
        if not found:
            total = _too_many(cells, measure, slicings)
        found.append(
            _change(cells, measure, slicing, at, inside, mine_there, expected_there, score, total, sure)
        )
        events[inside] *= expected_there / mine_there
    return found


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
        names: Dimensions; of a class of errors all calls of the rest are counted.
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


def _too_many(cells: pd.DataFrame, measure: Measure, slicings: Sequence[_Slicing]) -> float:
    """Return how many events the window has too many, over the tools that have any."""
    tools = next(slicing for slicing in slicings if slicing.names == ("tool",))
    events = cells[measure.events].to_numpy(float)
    return float(np.maximum(tools.events(events) - tools.expected, 0).sum())


def _change(
    cells: pd.DataFrame,
    measure: Measure,
    slicing: _Slicing,
    at: int,
    inside: npt.NDArray[np.intp],
    events: float,
    expected: float,
    score: float,
    total: float,
    sure: float,
) -> Change:
    row = cells.iloc[slicing.first[at]]
    excess = events - expected
    classes = None
    if measure.events == "errors":
        by_class = cells.iloc[inside].groupby("error_class")[measure.events].sum()
        classes = str(by_class.idxmax()) if len(by_class) else None
    return Change(
        measure=measure,
        where={name: str(row[name]) for name in slicing.names},
        calls=float(slicing.calls[at]),
        events=events,
        before=None if np.isnan(slicing.rate_before[at]) else float(slicing.rate_before[at]),
        expected=expected,
        share=min(1.0, excess / total) if total > 0 else 1.0,
        score=score,
        mostly=classes,
        is_sure=score >= sure,
    )
