"""Objectives of tools: what share of calls should be available, fast enough and correct.

The only place with their defaults. ``docs/objectives.md`` has the formulas and where they come
from; a file may set others, see :mod:`~fuseboard_dashboard.objective_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Final

from fuseboard.errors import ConfigurationError

SHORTEST_DAYS: Final = 7
"""A shorter period than twice the longest window of a burn rate judges nothing."""
LONGEST_DAYS: Final = 30
"""As long as calls are kept by default, and no page has a longer window."""
LONGEST_BOUND: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Objectives:
    """What is asked of one tool; a share of None asks for nothing.

    Attributes:
        availability: Share of calls that end without an error, 0 to 1.
        latency: Share of calls that take ``latency_seconds`` at most.
        latency_seconds: The bound, back-off included.
        correctness: Share of answers that are valid and live or fresh.
    """

    availability: float | None = 0.995
    latency: float | None = 0.95
    latency_seconds: float = 2.0
    correctness: float | None = 0.99

    def __post_init__(self) -> None:
        for name in ("availability", "latency", "correctness"):
            _check_share(name, getattr(self, name))
        seconds = self.latency_seconds
        if not _is_number(seconds) or not 0 < seconds <= LONGEST_BOUND:
            raise _refused("latency_seconds", seconds,
                           f"must be seconds above 0, at most {LONGEST_BOUND:g}")  # fmt: skip

    def target(self, kind: str) -> float | None:
        """Return the share of an objective, by its name."""
        share: float | None = getattr(self, kind)
        return share


@dataclass(frozen=True, slots=True)
class ObjectiveBook:
    """The objectives of all tools.

    Attributes:
        default: Of tools without their own.
        tools: By name.
        period_days: The rolling period that budgets are of.
    """

    default: Objectives = field(default_factory=Objectives)
    tools: Mapping[str, Objectives] = field(default_factory=dict)
    period_days: int = 30

    def __post_init__(self) -> None:
        days = self.period_days
        if not isinstance(days, int) or isinstance(days, bool) or not (
            SHORTEST_DAYS <= days <= LONGEST_DAYS
        ):  # fmt: skip
            raise ConfigurationError(
                f"ObjectiveBook(period_days={days!r}): must be whole days from {SHORTEST_DAYS} to "
                f"{LONGEST_DAYS}"
            )

    @property
    def period(self) -> timedelta:
        """Return the length of the period."""
        return timedelta(days=self.period_days)

    def of(self, tool: str) -> Objectives:
        """Return what is asked of a tool."""
        return self.tools.get(tool, self.default)

    def bounds(self) -> dict[str, object]:
        """Return the bounds of latency as query parameters."""
        own = {
            name: each.latency_seconds
            for name, each in self.tools.items()
            if each.latency_seconds != self.default.latency_seconds
        }
        return {
            "bound_tools": list(own),
            "bound_seconds": list(own.values()),
            "slow_seconds": self.default.latency_seconds,
        }


def doubts(objectives: Objectives) -> list[str]:
    """Return what is legal but hardly meant, as ``setting = value: words``."""
    found = []
    for each in fields(Objectives):
        value = getattr(objectives, each.name)
        if each.name == "latency_seconds" or value is None:
            continue
        if value > 0.9999:
            found.append(
                f"{each.name} = {value!r}: one bad call of {round(1 / (1 - value)):,} spends the "
                "whole budget"
            )
        elif value < 0.5:
            found.append(
                f"{each.name} = {value!r}: more than half of the calls may be bad; is it "
                f"{round(1 - value, 9)!r}?"
            )
    return found


def _check_share(name: str, share: object) -> None:
    if share is None:
        return
    if _is_number(share) and 0 < share < 1:  # type: ignore[operator]
        return
    hint = ""
    if _is_number(share) and 1 < share < 100:  # type: ignore[operator]
        hint = f"; for {share} % write {round(share / 100, 9)}"  # type: ignore[operator]
    raise _refused(name, share, f"must be a share above 0 and below 1, or None{hint}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refused(name: str, value: object, problem: str) -> ConfigurationError:
    return ConfigurationError(f"Objectives({name}={value!r}): {problem}")
