"""The shipped boards keep the rules, and each rule finds what it is for."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import board_rules
import pytest

import fuseboard.conventions as names
from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_grafana.boards import BOARDS
from fuseboard_grafana.render import check_boards, render_boards, write_boards

ROOT = Path(__file__).parents[2]
EXPORTED = {value for key, value in vars(names).items() if key.startswith("METRIC_")}
HISTOGRAMS = {names.METRIC_CALL_DURATION, names.METRIC_ATTEMPT_DURATION}


def test_hc_57_one_json_for_import_and_provisioning(board: dict[str, Any]) -> None:
    assert board_rules.findings(board) == []


def test_committed_boards_are_what_the_builder_writes() -> None:
    assert check_boards(ROOT / "grafana" / "dashboards") == []
    committed = {path.name for path in (ROOT / "grafana" / "dashboards").glob("*.json")}
    assert committed == set(render_boards())


def test_writing_boards_makes_the_folder_and_is_repeatable(tmp_path: Path) -> None:
    first = write_boards(tmp_path / "new" / "folder")
    texts = [path.read_bytes() for path in first]
    assert [path.read_bytes() for path in write_boards(tmp_path / "new" / "folder")] == texts
    first[0].write_text("{}")
    assert check_boards(tmp_path / "new" / "folder") == [first[0].name]


def test_uids_and_titles_are_unique() -> None:
    boards = [build() for build in BOARDS]
    assert len({board["uid"] for board in boards}) == len(boards)
    assert len({board["title"] for board in boards}) == len(boards)


def test_every_metric_of_a_board_is_one_we_export(board: dict[str, Any]) -> None:
    exported = EXPORTED | {
        f"{name}_{suffix}" for name in HISTOGRAMS for suffix in ("bucket", "count", "sum")
    }
    queries = [*board_rules.expressions(board), *board_rules.selectors_of_variables(board)]
    used = set().union(*(board_rules.metrics(expression) for _, expression in queries))
    assert used
    assert used <= exported


def test_panels_come_in_the_order_rate_errors_duration_resilience(board: dict[str, Any]) -> None:
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert rows == ["Rate", "Errors", "Duration", "Resilience"]


@pytest.mark.parametrize(
    ("title", "alert"),
    [
        ("Retry rate", "ToolCallRetryRateHigh"),
        ("Error rate", "ToolCallErrorRatioHigh"),
        ("Slower than 5 s", "ToolCallSlow"),
    ],
)
def test_lines_are_the_thresholds_of_the_catalogue(title: str, alert: str) -> None:
    (panel,) = (one for one in BOARDS[0]()["panels"] if one["title"] == title)
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
    assert [step["value"] for step in steps] == sorted(
        rule.condition.above for rule in CATALOGUE if rule.name == alert
    )
    assert panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] == "dashed"


def test_the_retry_line_is_at_five_percent() -> None:
    (panel,) = (one for one in BOARDS[0]()["panels"] if one["title"] == "Retry rate")
    assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"] == 0.05


def test_only_latency_asks_for_exemplars(board: dict[str, Any]) -> None:
    asking = {
        panel["title"]
        for panel in board_rules.panels(board)
        if any(target["exemplar"] for target in panel["targets"])
    }
    assert asking == {"Latency of calls"}


def test_provisioning_examples_name_no_board_and_set_the_scrape_interval() -> None:
    import yaml

    folder = ROOT / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["jsonData"]["timeInterval"] == "15s"
    assert source["jsonData"]["exemplarTraceIdDestinations"][0]["name"] == "trace_id"
    (provider,) = yaml.safe_load((folder / "dashboards" / "fuseboard.yml").read_text())["providers"]
    assert provider["type"] == "file"


def _panel(board: dict[str, Any], title: str) -> dict[str, Any]:
    return next(panel for panel in board["panels"] if panel["title"] == title)


def _expr(text: str) -> Callable[[dict[str, Any]], None]:
    def break_it(board: dict[str, Any]) -> None:
        _panel(board, "Calls by tool")["targets"][0]["expr"] = text

    return break_it


SCOPE = 'job=~"$job",instance=~"$instance",tool=~"$tool",region=~"$region"'
FAULTS: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "numeric id": ("identity", lambda board: board.update(id=2)),
    "inputs": ("identity", lambda board: board.update(__inputs=[])),
    "uid of nobody": ("identity", lambda board: board.update(uid="x")),
    "id 0": ("identity", lambda board: board["panels"][1].update(id=0)),
    "same id": ("identity", lambda board: board["panels"][1].update(id=board["panels"][2]["id"])),
    "named source": (
        "datasource",
        lambda board: _panel(board, "Retry rate").update(datasource={"uid": "PBFA97CFB590B2093"}),
    ),
    "no source": ("datasource", lambda board: board["annotations"]["list"][0].pop("datasource")),
    "source variable late": ("datasource", lambda board: board["templating"]["list"].reverse()),
    "no region": ("variables", lambda board: board["templating"]["list"].pop()),
    "no unit": (
        "texts_and_units",
        lambda board: _panel(board, "Retry rate")["fieldConfig"]["defaults"].pop("unit"),
    ),
    "no description": (
        "texts_and_units",
        lambda board: _panel(board, "Retry rate").update(description=""),
    ),
    "dead panel type": (
        "texts_and_units",
        lambda board: _panel(board, "Retry rate").update(type="graph"),
    ),
    "overlap": (
        "layout",
        lambda board: board["panels"][1].update(gridPos=board["panels"][2]["gridPos"]),
    ),
    "too wide": ("layout", lambda board: board["panels"][2]["gridPos"].update(w=20)),
    "unscoped": ("scope", _expr("sum(rate(fuseboard_tool_calls_total[$__rate_interval]))")),
    "bare counter": ("counters", _expr(f"sum(fuseboard_tool_calls_total{{{SCOPE}}})")),
    "fixed window": ("counters", _expr(f"sum(rate(fuseboard_tool_calls_total{{{SCOPE}}}[5m]))")),
    "unguarded": (
        "guarded_divisions",
        _expr(f"sum(rate(x_total{{{SCOPE}}}[1m])) / sum(rate(x_total{{{SCOPE}}}[1m]))"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_rule_finds_its_fault(fault: str) -> None:
    rule, break_it = FAULTS[fault]
    broken = copy.deepcopy(json.loads(json.dumps(BOARDS[0]())))
    break_it(broken)
    assert any(found.startswith(f"{rule}: ") for found in board_rules.findings(broken))
