"""What the processes of one demo run share: the scenario's clock and the seed."""

from __future__ import annotations

import json
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fuseboard_server.demo.scenario import Scenario, load

ENDPOINTS_FILE = "endpoints.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the demo, handed to each process as JSON.

    Attributes:
        scenario: Path of the scenario file.
        started: Unix time at which the scenario begins, seconds.
        speed: Scenario seconds per second.
        seed: Seed of every random choice.
        folder: Where the processes leave notes for each other.
        collector: Address that the agent exports to.
        metrics_port: Port for the agent's own /metrics, if it should offer them.
    """

    scenario: str
    started: float
    speed: float
    seed: int
    folder: str
    collector: str
    metrics_port: int | None = None

    def to_json(self) -> str:
        """Return the plan as one command-line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what ``to_json`` wrote."""
        return cls(**json.loads(text))

    def load_scenario(self) -> Scenario:
        """Read the scenario file."""
        return load(Path(self.scenario))

    def elapsed(self) -> float:
        """Return the scenario seconds since the start; negative before it."""
        return (time.time() - self.started) * self.speed

    def real(self, scenario_seconds: float) -> float:
        """Return how long a scenario duration takes, in seconds."""
        return scenario_seconds / self.speed

    def rng(self, *names: str) -> random.Random:
        """Return a source of randomness of its own for one purpose, so that runs repeat."""
        return random.Random("/".join((str(self.seed), *names)))

    @property
    def endpoints_path(self) -> Path:
        """File in which the backend tells its addresses."""
        return Path(self.folder) / ENDPOINTS_FILE
