"""Reads a scenario file and answers which faults are active when."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_SCENARIO = Path(__file__).with_name("scenario.toml")
REGIONS = ("us-east", "eu-west", "ap-southeast")
HTTP_TOOLS = (
    "web_search",
    "weather",
    "flights",
    "hotels",
    "payment",
    "exchange_rate",
    "maps",
    "knowledge_base",
)
MCP_TOOLS = ("travel_advisory",)
TOOLS = (*HTTP_TOOLS, *MCP_TOOLS)
EVERY_TOOL = "*"
REPEATING = "repeat"

REQUIRED_BY_KIND: Mapping[str, frozenset[str]] = {
    "latency": frozenset({"seconds"}),
    "status": frozenset({"status"}),
    "refuse": frozenset(),
    "cut": frozenset(),
    "empty": frozenset(),
    "malformed": frozenset(),
    "renamed": frozenset(),
    "partial": frozenset(),
    "application_error": frozenset(),
    "is_error": frozenset(),
    "bad_arguments": frozenset(),
    "missing_argument": frozenset(),
    REPEATING: frozenset(),
}
"""Kind of fault → the fields that it needs besides tool, from, until and kind."""

AGENT_KINDS = frozenset({"bad_arguments", "missing_argument", REPEATING})
"""Faults of the model; the agent commits them itself."""


class ScenarioError(ValueError):
    """A scenario file is wrong; the message names the file, the entry and what to change."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one tool for some time; the fields are those of the file."""

    tool: str
    regions: tuple[str, ...]
    start: float
    end: float
    kind: str
    ratio: float = 1.0
    seconds: tuple[float, float] = (0.0, 0.0)
    status: int = 500
    code: str | None = None
    retry_after: float | None = None

    def hits(self, tool: str, region: str, at: float) -> bool:
        """Tell whether the fault is active for a tool and region at a scenario time."""
        return (
            self.tool in {tool, EVERY_TOOL}
            and region in self.regions
            and self.start <= at < self.end
        )

    def latency(self, at: float) -> float:
        """Return the delay in scenario seconds, which changes linearly over the fault."""
        low, high = self.seconds
        return low + (high - low) * (at - self.start) / (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Note:
    """A line to print at a scenario time."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A written course of faults.

    Attributes:
        length: Scenario seconds until the clock returns to ``loop_from``.
    """

    length: float
    loop_from: float
    faults: tuple[Fault, ...]
    notes: tuple[Note, ...]

    def position(self, elapsed: float) -> float:
        """Return the scenario time after ``elapsed`` scenario seconds, the loop applied."""
        if elapsed < self.length:
            return elapsed
        return self.loop_from + (elapsed - self.length) % (self.length - self.loop_from)

    def active(self, tool: str, region: str, at: float) -> list[Fault]:
        """Return the faults that are active for a tool and region, in the file's order."""
        return [fault for fault in self.faults if fault.hits(tool, region, at)]

    def refusable(self) -> list[tuple[str, str]]:
        """Return each (tool, region) that refuses connections at some time."""
        return sorted(
            {
                (tool, region)
                for fault in self.faults
                if fault.kind == "refuse"
                for tool in (HTTP_TOOLS if fault.tool == EVERY_TOOL else (fault.tool,))
                for region in fault.regions
            }
        )


def load(path: Path = DEFAULT_SCENARIO) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: If the file can't be read or an entry is wrong.
    """
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ScenarioError(f"can't read the scenario {path}: {error}") from error
    try:
        length, loop_from = float(document["length"]), float(document["loop_from"])
        notes = tuple(Note(float(n["at"]), str(n["text"])) for n in document.get("note", []))
    except (KeyError, TypeError, ValueError) as error:
        raise ScenarioError(
            f"{path}: a scenario needs length, loop_from and notes with at and text ({error!r})"
        ) from error
    if not 0 <= loop_from < length:
        raise ScenarioError(f"{path}: loop_from={loop_from!r} must lie in [0, length={length!r})")
    faults = []
    for number, entry in enumerate(document.get("fault", []), start=1):
        try:
            faults.append(_fault(entry))
        except (KeyError, TypeError, ValueError) as error:
            raise ScenarioError(f"{path}: fault {number}: {error}") from error
    return Scenario(length, loop_from, tuple(faults), tuple(sorted(notes, key=lambda n: n.at)))


def _fault(entry: Mapping[str, object]) -> Fault:
    fields = dict(entry)
    missing = {"tool", "from", "until", "kind"} - fields.keys()
    if missing:
        raise ValueError(f"{', '.join(sorted(missing))} missing")
    kind = str(fields["kind"])
    if kind not in REQUIRED_BY_KIND:
        raise ValueError(f"kind={kind!r} is none of {', '.join(REQUIRED_BY_KIND)}")
    if lacking := REQUIRED_BY_KIND[kind] - fields.keys():
        raise ValueError(f"kind={kind!r} needs {', '.join(sorted(lacking))}")
    fields["start"], fields["end"] = fields.pop("from"), fields.pop("until")
    fields["regions"] = tuple(fields.get("regions", REGIONS))  # type: ignore[arg-type]
    if "seconds" in fields:
        fields["seconds"] = _pair(fields["seconds"])
    unknown = fields.keys() - set(Fault.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown field {', '.join(sorted(unknown))}")
    fault = Fault(**fields)  # type: ignore[arg-type]
    _check(fault)
    return fault


def _pair(value: object) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"seconds={value!r} must be [at the start, at the end]")
    return float(value[0]), float(value[1])


def _check(fault: Fault) -> None:
    if fault.tool not in {*TOOLS, EVERY_TOOL}:
        raise ValueError(f"tool={fault.tool!r} is none of {', '.join(TOOLS)}, *")
    if unknown := set(fault.regions) - set(REGIONS):
        raise ValueError(f"regions={sorted(unknown)!r} are none of {', '.join(REGIONS)}")
    if not 0 <= fault.start < fault.end:
        raise ValueError(f"from={fault.start!r} must be below until={fault.end!r}")
    if not 0 < fault.ratio <= 1:
        raise ValueError(f"ratio={fault.ratio!r} must lie in (0, 1]")
    if fault.kind == "status" and not 400 <= fault.status <= 599:
        raise ValueError(f"status={fault.status!r} must lie in 400 to 599")
    if fault.kind == "is_error" and fault.tool not in MCP_TOOLS:
        raise ValueError(f"kind='is_error' is for MCP tools: {', '.join(MCP_TOOLS)}")
