"""``--objectives``: what a wrong file says at the start, and a doubtful one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseboard_dashboard.objectives import Objectives
from fuseboard_server.cli import root
from fuseboard_server.commands.objectives import read
from fuseboard_server.exits import CommandError


def test_no_file_means_the_defaults() -> None:
    assert read(None) is None


def test_a_file_is_read_and_what_is_hardly_meant_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fuseboard.toml"
    path.write_text("[objectives]\navailability = 0.99999\n")
    book = read(path)
    assert book is not None
    assert book.default == Objectives(availability=0.99999)
    assert "Warning: " in capsys.readouterr().err


@pytest.mark.parametrize("command", [["serve"], ["dashboard", "--collector", "http://127.0.0.1:9"]])
def test_a_wrong_file_ends_the_start_with_its_line(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "fuseboard.toml"
    path.write_text("[objectives]\nlatency = 95\n")
    data = ["--data", str(tmp_path)] if command == ["serve"] else []
    done = CliRunner().invoke(root, [*command, *data, "--objectives", str(path)])
    assert done.exit_code == 2
    assert f"{path}, line 2: [objectives] latency = 95: must be a share" in done.output
    assert "for 95 % write 0.95" in done.output
    assert not list(tmp_path.glob("*.duckdb"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.toml"):
        read(tmp_path / "none.toml")
