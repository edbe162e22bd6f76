"""The scenario is data: what it says happens, and a wrong file says where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseboard_server.demo.scenario import (
    AGENT_KINDS,
    MCP_TOOLS,
    REGIONS,
    REQUIRED_BY_KIND,
    TOOLS,
    Fault,
    ScenarioError,
    load,
)

FAULT = '[[fault]]\ntool = "weather"\nfrom = 0\nuntil = 10\n'
HEAD = "length = 100\nloop_from = 50\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


def test_the_shipped_scenario_walks_through_every_kind_of_fault() -> None:
    scenario = load()
    story = [f for f in scenario.faults if f.start < scenario.loop_from]
    assert {f.kind for f in story} == set(REQUIRED_BY_KIND)
    assert {f.status for f in story if f.kind == "status"} == {401, 402, 429, 501, 503}
    assert {region for f in story for region in f.regions} == set(REGIONS)
    assert scenario.notes[0].at == 0


def test_the_shipped_weather_outage_has_the_five_phases() -> None:
    scenario = load()

    def kinds(at: float) -> list[str]:
        active = scenario.active("weather", "eu-west", at)
        return [f.kind for f in active if f.tool == "weather"]

    assert [kinds(at) for at in (30, 50, 100, 150, 250, 290)] == [
        [], ["latency"], ["status"], ["refuse"], ["latency", "status"], [],
    ]  # fmt: skip
    assert scenario.refusable() == [("weather", "eu-west")]
    assert not [f for f in scenario.active("weather", "us-east", 100) if f.tool == "weather"]


def test_latency_changes_linearly() -> None:
    fault = Fault("weather", REGIONS, 20, 50, "latency", seconds=(0.2, 8.0))
    assert fault.latency(20) == pytest.approx(0.2)
    assert fault.latency(35) == pytest.approx(4.1)
    assert not fault.hits("weather", "us-east", 50)
    assert fault.hits("weather", "us-east", 49.9)


def test_the_clock_tells_the_story_once_and_then_loops(tmp_path: Path) -> None:
    scenario = load(write(tmp_path, HEAD))
    positions = [scenario.position(t) for t in (-3, 0, 99, 100, 149, 150, 1000)]
    assert positions == [-3, 0, 99, 50, 99, 50, 50]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("length = ", ["can't read"]),
        ("length = 5", ["loop_from"]),
        ("length = 5\nloop_from = 5", ["loop_from=5"]),
        (HEAD + "[[fault]]\ntool = 'weather'", ["fault 1", "from", "kind", "until"]),
        (HEAD + FAULT + "kind = 'explode'", ["'explode'", "malformed"]),
        (HEAD + FAULT + "kind = 'latency'", ["latency", "seconds"]),
        (HEAD + FAULT + "kind = 'latency'\nseconds = 3", ["seconds=3", "at the end"]),
        (HEAD + FAULT + "kind = 'status'\nstatus = 200", ["200", "400 to 599"]),
        (HEAD + FAULT + "kind = 'cut'\nratio = 0", ["ratio=0", "(0, 1]"]),
        (HEAD + FAULT + "kind = 'cut'\nregions = ['mars']", ["mars", "us-east"]),
        (HEAD + FAULT + "kind = 'cut'\nspeed = 1", ["unknown field", "speed"]),
        (HEAD + FAULT + "kind = 'is_error'", ["is_error", *MCP_TOOLS]),
        (HEAD + FAULT.replace("weather", "oracle") + "kind = 'cut'", ["oracle", *TOOLS]),
        (HEAD + FAULT.replace("10", "0") + "kind = 'cut'", ["from=0", "until=0"]),
    ],
)
def test_a_wrong_file_says_where_and_what(tmp_path: Path, text: str, words: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)


def test_the_agents_kinds_are_kinds() -> None:
    assert set(REQUIRED_BY_KIND) >= AGENT_KINDS
