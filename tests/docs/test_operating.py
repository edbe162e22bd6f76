"""The page on operating the store quotes what the code says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseboard_collector.store import compaction, memory, repair, retention, space
from fuseboard_server.cli import root
from fuseboard_server.commands.serve import serve

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operating.md").read_text()


def spoken() -> str:
    """Return all texts of the store and its command line, one to a line."""
    texts = []
    for package in ("collector/fuseboard_collector", "server/fuseboard_server"):
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.JoinedStr):
                    parts = [p.value for p in node.values if isinstance(p, ast.Constant)]
                    texts.append("…".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    return "\n".join(texts)


def test_every_message_of_the_page_is_one_of_the_program() -> None:
    quoted = re.findall(r'^\| "([^"]+)" \|', PAGE, re.MULTILINE)
    assert len(quoted) >= 12
    said = spoken()
    for message in quoted:
        assert message in said, message


def test_every_command_of_the_page_exists() -> None:
    commands = re.findall(r"`(?:\$ )?fuseboard ((?:store )?[a-z]+)((?: --[a-z-]+)*)", PAGE)
    assert len(commands) >= 8
    for command, options in commands:
        shown = CliRunner().invoke(root, [*command.split(), "--help"])
        assert shown.exit_code == 0, command
        for option in options.split():
            assert option in shown.output, (command, option)


@pytest.mark.parametrize("option", ["retention", "max_size"])
def test_defaults_of_serve_are_those_of_the_page(option: str) -> None:
    (parameter,) = [found for found in serve.params if found.name == option]
    default = f"`{parameter.default}`" if isinstance(parameter.default, str) else "none"
    assert f"| `--{option.replace('_', '-')}` | {default} |" in PAGE


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"from {retention.HIGH:.0%}".replace("%", " %") in text
    assert f"until {retention.LOW:.0%}".replace("%", " %") in text
    assert retention.STEP_ROWS == 1_000_000
    assert retention.SIZE_INTERVAL_SECONDS == 30
    assert f"over {compaction.WORTH_BYTES // space.MIB} MiB" in text
    assert f"{space.FREE_SPACE_FLOOR // space.MIB} MiB must be free" in text
    assert f"group of {repair.GROUP_ROWS:,}" in text
    assert (
        f"from {memory.LEAST // memory.MIB} MiB to {memory.MOST // memory.MIB // 1024} GiB" in text
    )
    assert memory.SHARE == 4
