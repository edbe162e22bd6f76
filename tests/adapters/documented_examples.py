"""Runs in each environment: what docs/adapters.md shows for its framework works as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from fuseboard import adapters

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()
FRAMEWORK = os.environ.get("FUSEBOARD_ADAPTER_ENVIRONMENT", "").partition("-")[0]
FUNCTION = f"instrument_{FRAMEWORK}"
BLOCKS = [
    block
    for block in re.findall(r"^```py\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    if f"import {FUNCTION}\n" in block and "fuseboard.init" not in block
]


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    yield
    getattr(adapters, f"un{FUNCTION}", lambda: None)()


@pytest.mark.skipif(FUNCTION not in adapters.__all__, reason="an environment of no framework")
@pytest.mark.filterwarnings("default")
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    (block,) = BLOCKS
    # In a file, because smolagents reads the source of its tools.
    path = tmp_path / "example.py"
    path.write_text(block)
    exec(compile(block, str(path), "exec"), {"__name__": "example"})
    installation = import_module(f"fuseboard.adapters.{FRAMEWORK}")._INSTALLATION
    assert installation.is_installed
