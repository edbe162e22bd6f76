"""The part of the demo agent that stands for a language model: it chooses tools and arguments.

It is a plain program with a seed. Now and then, as the scenario wants, it makes the mistakes
that models make: arguments that do not exist, and arguments left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.scenario import AGENT_KINDS, REPEATING, Scenario
from fuseboard_server.demo.services import CITIES, CURRENCIES

FIRST_DAY = date(2027, 3, 1)
DAYS = 14

INVENTED = {
    "exchange_rate": ("target", "EURO"),
    "hotels": ("nights", 0),
    "web_search": ("query", ""),
}
"""Tool → the argument that the model gets wrong, and what it makes up."""

MISTAKES = AGENT_KINDS - {REPEATING}
REPEATS = (3, 12)
"""Fewest and most calls that a model in circles makes after the first, with its arguments."""

FORGOTTEN = {"hotels": "nights", "exchange_rate": "source", "flights": "day", "weather": "day"}
"""Tool → the argument that the model leaves out."""


@dataclass(frozen=True, slots=True)
class Trip:
    """What a traveller asked for."""

    origin: str
    city: str
    day: str
    nights: int
    currency: str


class Model:
    """Decides what one region's agent does."""

    def __init__(self, plan: Plan, scenario: Scenario, region: str) -> None:
        self._plan = plan
        self._scenario = scenario
        self._region = region
        self._rng = plan.rng("model", region)

    def next_trip(self) -> Trip:
        """Return the next traveller's wish."""
        origin, city = self._rng.sample(sorted(CITIES), 2)
        return Trip(
            origin=origin,
            city=city,
            day=(FIRST_DAY + timedelta(days=self._rng.randrange(DAYS))).isoformat(),
            nights=self._rng.randint(1, 5),
            currency=self._rng.choice(sorted(CURRENCIES)),
        )

    def pause(self, mean: float) -> float:
        """Return the seconds until the next traveller comes."""
        return mean * self._rng.uniform(0.7, 1.3)

    def real_pause(self, mean: float) -> float:
        """Return about so many scenario seconds as seconds of the clock."""
        return self._plan.real(self.pause(mean))

    def repeats(self, tool: str) -> int:
        """Return how often it asks the same once more although it has the answer: mostly never."""
        at = self._scenario.position(self._plan.elapsed())
        for fault in self._scenario.active(tool, self._region, at):
            if fault.kind == REPEATING and self._rng.random() < fault.ratio:
                return self._rng.randint(*REPEATS)
        return 0

    def arguments(self, tool: str, right: dict[str, object]) -> dict[str, object]:
        """Return the arguments of a call, usually the right ones."""
        at = self._scenario.position(self._plan.elapsed())
        for fault in self._scenario.active(tool, self._region, at):
            if fault.kind in MISTAKES and self._rng.random() < fault.ratio:
                return _mistaken(tool, fault.kind, right)
        return right


def _mistaken(tool: str, kind: str, right: dict[str, object]) -> dict[str, object]:
    if kind == "missing_argument":
        forgotten = FORGOTTEN.get(tool, next(iter(right)))
        return {name: value for name, value in right.items() if name != forgotten}
    name, value = INVENTED.get(tool, ("city", "Atlantis"))
    return {**right, name: value}
