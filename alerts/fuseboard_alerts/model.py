"""The vocabulary in which alerts are written down, independent of who evaluates them.

A rule is a :class:`Rule` with one condition out of a small closed set. Each target (Prometheus,
the embedded evaluator) renders every kind of condition; a new kind is a new dataclass here and
one branch per target.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fuseboard.conventions import DURATION_BUCKETS

GROUP_BY: Final = ("job", "tool", "region")
"""Labels that tell the instances of a rule apart; ``job`` is the service in the store."""

MINUTE: Final = 60.0
HOUR: Final = 3600.0


class Severity(StrEnum):
    """How soon somebody must look: page now, work queue, or context only."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class CatalogueError(ValueError):
    """A rule contradicts itself; the message names the rule, the value and the legal range."""


@dataclass(frozen=True, slots=True)
class Selector:
    """Which series of a counter are added up.

    Attributes:
        metric: A name of ``fuseboard.conventions``.
        matchers: ``(label, operator, value)`` with an operator of PromQL.
    """

    metric: str
    matchers: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ratio:
    """Events over calls in a window are above a threshold.

    Attributes:
        query: The store's query for the same numbers, without its suffix.
        subject: Name of the events in recording rules, for example ``retried_calls``.
        population: Name of the calls in recording rules, for example ``attempted_calls``.
        events: Series of the numerator.
        calls: Series of the denominator.
        window: Seconds.
        above: Threshold of the ratio, 0 to 1; the rule is true above it, not at it.
        minimum_calls: Fewest calls in the window for the rule to be true.
        minimum_events: Fewest events in the window for the rule to be true.
    """

    query: str
    subject: str
    population: str
    events: Selector
    calls: Selector
    window: float
    above: float
    minimum_calls: int
    minimum_events: int


@dataclass(frozen=True, slots=True)
class SlowShare:
    """The share of calls slower than a bound is above a threshold.

    A share, not a quantile: a quantile estimated from buckets disagrees with the exact one in
    more than half of all instants, the share over a bucket bound in none (measured over 378).

    Attributes:
        metric: Name of the histogram, without ``_bucket``.
        slower_than: Seconds; must be a bucket bound.
    """

    query: str
    subject: str
    population: str
    metric: str
    slower_than: float
    window: float
    above: float
    minimum_calls: int
    minimum_events: int


@dataclass(frozen=True, slots=True)
class StateFor:
    """A state-set gauge was in one of the states at some time in the window, in any process.

    Attributes:
        metric: A gauge of 0 and 1, one series per state.
        states: Values of its ``state`` label.
        window: Seconds; longer than a scrape interval, so that a brief change is not missed.
    """

    query: str
    metric: str
    states: tuple[str, ...]
    window: float


@dataclass(frozen=True, slots=True)
class Absent:
    """No process reports the metric any more.

    Attributes:
        lookback: Seconds for which the last report counts; Prometheus' own is five minutes.
    """

    query: str
    metric: str
    lookback: float


Condition = Ratio | SlowShare | StateFor | Absent


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert.

    Attributes:
        name: CamelCase, starts with ``ToolCall``.
        severity: Two rules may share a name if their severities differ.
        hold: Seconds for which the condition must be true before the alert fires (``for``).
        keep_firing: Seconds for which it goes on firing after the condition was last true.
        summary: A sentence without placeholders.
        description: May name ``{job}``, ``{tool}``, ``{region}`` and ``{value}``.
    """

    name: str
    severity: Severity
    condition: Condition
    hold: float
    keep_firing: float
    summary: str
    description: str

    def __post_init__(self) -> None:
        """Refuse a rule that could never work."""
        condition = self.condition
        if isinstance(condition, Ratio | SlowShare) and not 0 <= condition.above < 1:
            raise CatalogueError(f"rule {self.name!r}: above={condition.above!r} is outside [0, 1)")
        if isinstance(condition, SlowShare) and condition.slower_than not in DURATION_BUCKETS:
            raise CatalogueError(
                f"rule {self.name!r}: slower_than={condition.slower_than!r} is not a bucket bound "
                f"of the duration histogram; choose one of {DURATION_BUCKETS}"
            )

    @property
    def id(self) -> str:
        """Name and severity: unique in the catalogue."""
        return f"{self.name}/{self.severity}"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels that tell this rule's instances apart."""
        return () if isinstance(self.condition, Absent) else GROUP_BY


def percentage(value: float) -> str:
    """Write a ratio as Prometheus' ``humanizePercentage`` does: four significant digits."""
    return f"{value * 100:.4g}%"
