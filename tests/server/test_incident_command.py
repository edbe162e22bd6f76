"""``fuseboard incident`` writes the report of the page, and says what is wrong with a window."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.dashboard.incident_drama import fill

from fuseboard_collector.store import open_store
from fuseboard_server.cli import root

GOLDEN = Path(__file__).parents[1] / "golden" / "incident.md"
WINDOW = ("--from", "2026-01-05T12:00:00Z", "--to", "2026-01-05T14:00:00+01:00")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = open_store(tmp_path / "fuseboard.duckdb", retention_days=None)
    fill(store)
    store.close()
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(root, ["incident", *arguments])
    return done.exit_code, done.output


def test_the_report_is_that_of_the_page(folder: Path) -> None:
    output = folder / "incident.md"
    code, _ = run(*WINDOW, "--data", str(folder), "--dashboard", "https://board.example/f",
                  "--output", str(output))  # fmt: skip
    assert code == 0
    zone = "; the viewer's zone was Asia/Shanghai (UTC+08:00)"
    assert output.read_text() == GOLDEN.read_text().replace(zone, "")


def test_filters_and_links_without_a_dashboard(folder: Path) -> None:
    code, text = run(*WINDOW, "--data", str(folder), "--tool", "calm", "--region", "us-east")
    assert code == 0
    assert "Only tools `calm`, regions `us-east`." in text
    assert "`incident?from=2026-01-05T12%3A00%3A00Z" in text
    assert "](" not in text


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            ("--from", "yesterday", "--to", "2026-01-05T12:00Z"),
            "'yesterday' is no moment; write it",
        ),
        (("--from", "2026-01-05T12:00Z", "--to", "2026-01-05T12:00Z"), "must be earlier than --to"),
        (("--from", "2026-01-05", "--to", "2026-03-05"), "59.0 days long; a report is about 30"),
        (("--from", "2026-01-05"), "Missing option '--to'"),
    ],
)
def test_a_window_that_can_not_be_is_refused(window: tuple[str, ...], words: str) -> None:
    code, text = run(*window, "--data", "/nowhere")
    assert code == 2
    assert words in text
