"""Slices of calls, and how much more often something happened in them than before.

A slice is all calls that share a few values: a tool, a tool in a region, one argument hash there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

Numbers: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]

PRIOR_CALLS: Final = 200.0
"""So many more a slice is taken to have had before, at the rate around it."""

LEAST_EVENTS: Final = 3.0
LEAST_GROWTH: Final = 1.3

CLASS: Final = "error_class"
DIMENSIONS: Final = ("tool", "region", "agent", "service", "upstream", "args_hash", CLASS)

DESCRIPTIONS: Final[tuple[tuple[str, ...], ...]] = (
    ("service",), ("agent",), ("upstream",), ("region", "upstream"),
    ("upstream", CLASS), ("agent", CLASS), (CLASS,), ("region", CLASS), ("tool", CLASS),
    ("tool", "region", CLASS), ("tool", "args_hash", CLASS),
    ("tool", "region", "args_hash", CLASS),
    ("tool", "service"), ("tool", "agent"), ("tool", "upstream"), ("tool", "region", "agent"),
    ("tool",), ("region",), ("tool", "region"), ("tool", "args_hash"),
    ("tool", "region", "args_hash"),
)  # fmt: skip
"""By which values calls are sliced; of slices that hold the same calls the last tells best."""


class Cells:
    """The finest slices, as the store counts them, and how they come together in coarser ones."""

    def __init__(self, frame: pd.DataFrame) -> None:
        """Take rows of ``page_changes``."""
        self.frame = frame
        codes = (pd.factorize(frame[name])[0] for name in DIMENSIONS)
        self._codes = dict(zip(DIMENSIONS, codes, strict=True))
        self._places: dict[tuple[str, ...], Places] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, names: tuple[str, ...]) -> Places:
        """Return for each cell the number of its slice by some dimensions; null is a value too."""
        if names not in self._places:
            joined = np.zeros(len(self), np.int64)
            for name in names:
                code = self._codes[name]
                # Made dense each time, so that no product of many values can overflow.
                joined = np.unique(joined * (int(code.max()) + 2) + code + 1, return_inverse=True)[
                    1
                ]
            self._places[names] = joined.astype(np.intp)
        return self._places[names]

    def with_values(self, names: tuple[str, ...]) -> Places:
        """Return the numbers of the cells that have values for all of some dimensions."""
        return np.flatnonzero(np.all([self._codes[name] >= 0 for name in names], axis=0))

    def column(self, name: str) -> Numbers:
        """Return a number of each cell."""
        return self.frame[name].to_numpy(np.float64)


@dataclass(frozen=True, slots=True)
class Counted:
    """What is looked for, of each cell.

    Attributes:
        cells: The cells.
        calls: Calls that rates are of.
        calls_before: In the window before.
        events: What happened among them.
        events_before: In the window before.
    """

    cells: Cells
    calls: Numbers
    calls_before: Numbers
    events: Numbers
    events_before: Numbers

    def sums(self, names: tuple[str, ...], values: Numbers) -> Numbers:
        """Return for each cell the sum of a number over the cells with the same values."""
        place = self.cells.place(names)
        return _sums(place, values, int(place.max()) + 1)[place]

    def rates_before(self, names: tuple[str, ...], around: Numbers | float) -> Numbers:
        """Return for each cell how often something had happened among what shares its values.

        Args:
            names: Dimensions; what has a class is divided by all calls of the rest.
            around: The rate to begin with.
        """
        had = self.sums(names, self.events_before)
        calls = self.sums(_without_class(names), self.calls_before)
        rates: Numbers = (had + PRIOR_CALLS * around) / (calls + PRIOR_CALLS)
        return rates


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice.

    Attributes:
        slicing: Where it is from.
        at: Its number there.
        inside: Numbers of its cells.
        calls: Of the window.
        events: Of the window.
        expected: Events if the rate had stayed.
        score: Log likelihood ratio of two rates against one, in nats; 0 where it did not rise.
    """

    slicing: Slicing
    at: int
    inside: Places
    calls: float
    events: float
    expected: float
    score: float


@dataclass(frozen=True, slots=True)
class Slicing:
    """Calls sliced by some dimensions.

    Attributes:
        names: The dimensions.
        cells: Numbers of the cells that have values for all of them.
        place: Number of the slice of each of these.
        first: A cell of each slice.
        calls: Of each slice in the window.
        calls_before: In the window before.
        events_before: In the window before.
        around: How often something had happened around each before.
    """

    names: tuple[str, ...]
    cells: Places
    place: Places
    first: Places
    calls: Numbers
    calls_before: Numbers
    events_before: Numbers
    around: Numbers

    @property
    def rate_before(self) -> Numbers:
        """Return events over calls in the window before; NaN without calls."""
        none = np.full(len(self.first), np.nan)
        before = self.calls_before
        rates: Numbers = np.divide(self.events_before, before, out=none, where=before > 0)
        return rates

    @property
    def expected(self) -> Numbers:
        """Return how many events there would be if rates had stayed."""
        had, calls = self._before(PRIOR_CALLS)
        expected: Numbers = self.calls * had / calls
        return expected

    def events(self, of_cells: Numbers) -> Numbers:
        """Add up a number of each cell by slice."""
        return _sums(self.place, of_cells[self.cells], len(self.first))

    def best(self, of_cells: Numbers) -> Slice:
        """Return the slice with the highest score."""
        scores = self.scores(of_cells)
        at = int(np.argmax(scores))
        return self.slice(at, of_cells, float(scores[at]))

    def within(self, other: Slice) -> npt.NDArray[np.bool_]:
        """Tell of each slice whether all its calls are in another one, and not all of that."""
        is_inside = np.zeros(int(max(self.cells.max(), other.inside.max())) + 1, bool)
        is_inside[other.inside] = True
        size = len(self.first)
        both = np.bincount(self.place, is_inside[self.cells], size)
        sizes = np.bincount(self.place, minlength=size)
        inside: npt.NDArray[np.bool_] = (both == sizes) & (sizes < len(other.inside))
        return inside

    def slice(self, at: int, of_cells: Numbers, score: float) -> Slice:
        """Return one slice by its number."""
        inside = self.cells[self.place == at]
        happened = float(of_cells[inside].sum())
        expected = float(self.expected[at])
        return Slice(self, at, inside, float(self.calls[at]), happened, expected, score)

    def scores(self, of_cells: Numbers, prior: float = PRIOR_CALLS) -> Numbers:
        """Return the log likelihood ratio of two rates against one, 0 where they did not rise.

        Args:
            of_cells: Events of each cell.
            prior: Calls that each slice is taken to have had besides.
        """
        events = self.events(of_cells)
        had, calls_before = self._before(prior)
        pooled = (events + had) / (self.calls + calls_before)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = events * np.log(events / (self.calls * pooled)) + had * np.log(
                had / (calls_before * pooled)
            )
        rose = (events >= LEAST_EVENTS) & (events > LEAST_GROWTH * self.expected)
        scores: Numbers = np.where(rose & np.isfinite(score), score, 0.0)
        return scores

    def _before(self, prior: float) -> tuple[Numbers, Numbers]:
        return self.events_before + prior * self.around, self.calls_before + prior


def slicings(counted: Counted, *, by_class: bool) -> Iterator[Slicing]:
    """Yield the calls sliced in each way in which there are any slices.

    Args:
        counted: What is looked for.
        by_class: Whether it has classes.
    """
    all_before = float(counted.calls_before.sum())
    overall = (float(counted.events_before.sum()) + 0.5) / (all_before + 1.0)
    of_class = (counted.sums((CLASS,), counted.events_before) + 0.5) / (all_before + 1.0)
    tools = counted.rates_before(("tool",), overall)
    tool_classes = counted.rates_before(("tool", CLASS), of_class)
    for names in DESCRIPTIONS:
        has_class = CLASS in names
        if has_class and not by_class:
            continue
        inside = counted.cells.with_values(names)
        if not len(inside):
            continue
        around: Numbers = of_class if has_class else np.full(len(of_class), overall)
        if "tool" in names and names != ("tool",):
            around = tool_classes if has_class else tools
        yield _sliced(counted, names, inside, around)


def _sliced(counted: Counted, names: tuple[str, ...], inside: Places, around: Numbers) -> Slicing:
    _, first, place = np.unique(
        counted.cells.place(names)[inside], return_index=True, return_inverse=True
    )
    first, size = inside[first], len(first)
    # A class is one of faults: its calls are all of that place, whatever came of them.
    places = _without_class(names)
    calls = counted.sums(places, counted.calls)[first]
    calls_before = counted.sums(places, counted.calls_before)[first]
    had = _sums(place, counted.events_before[inside], size)
    return Slicing(names, inside, place, first, calls, calls_before, had, around[first])


def _without_class(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name != CLASS)


def _sums(place: Places, values: Numbers, size: int) -> Numbers:
    return np.bincount(place, values, size).astype(np.float64)
