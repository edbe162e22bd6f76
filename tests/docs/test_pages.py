"""Every page: its code runs, its commands, links, anchors and names exist."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, anchors, blocks, name_of, section, table, without_code
from tests.docs.running import run_python

import fuseboard
from fuseboard import conventions
from fuseboard_alerts.catalogue import rule_names
from fuseboard_collector.metrics import NAMES

FUSEBOARD = Path(sys.executable).parent / "fuseboard"
IMPORT_PACKAGES = {path.name for path in ROOT.glob("*/fuseboard_*") if path.is_dir()}
CONSTANTS = {
    value for name, value in vars(conventions).items() if name.isupper() and isinstance(value, str)
}
of_every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page.read_text(), "python")], ids=name_of
)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    for block in blocks(page.read_text(), "python"):
        run_python(block, tmp_path)


@of_every_page
def test_commands_exist(page: Path) -> None:
    """Every ``fuseboard …`` in a shell block is a command with those options."""
    for line in "\n".join(blocks(page.read_text(), "sh")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["make", "run"]:
            # The Makefile hands them on.
            options = [word.removeprefix("ARGS=") for word in words[2:]]
            words = ["fuseboard", "demo", *shlex.split(" ".join(options))]
        if not words or words[0] != "fuseboard":
            continue
        command = [word for word in words[1:] if not word.startswith("-")][:2]
        shown = _help(*command) or _help(*command[:1])
        assert shown is not None, line
        for option in (word for word in words if word.startswith("--")):
            assert option.split("=")[0] in shown, f"{option} in {line!r}"


@cache
def _help(*command: str) -> str | None:
    done = subprocess.run(
        [str(FUSEBOARD), *command, "--help"], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


@of_every_page
def test_links_and_their_anchors_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)[^)]*\)", without_code(page.read_text())):
        if link.startswith(("http://", "https://")):
            continue
        target, _, anchor = link.partition("#")
        found = (page.parent / target) if target else page
        assert found.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor in anchors(found), f"{name_of(page)} links to {link}"


@of_every_page
def test_alerts_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"\bToolCall[A-Z]\w+", page.read_text()))
    assert named <= set(rule_names())


@of_every_page
def test_metrics_and_attributes_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    metrics = set(re.findall(r"\b(fuseboard_\w+)", text)) - IMPORT_PACKAGES
    histograms = {f"{name}_{part}" for name in CONSTANTS for part in ("bucket", "count", "sum")}
    assert metrics <= CONSTANTS | histograms | NAMES
    attributes = set(re.findall(r"`((?:gen_ai|error|cloud)\.[\w.]+)`", text))
    in_code = {"error.retry_after", "error.value", "error.problems"}
    assert attributes - in_code <= CONSTANTS


@of_every_page
def test_names_of_fuseboard_exist(page: Path) -> None:
    """What is written as ``fuseboard.…`` is an attribute of telemetry or a name to import."""
    for name in set(re.findall(r"\bfuseboard\.([a-z_]\w*(?:\.\w+)*)", page.read_text())):
        is_file = name in {"toml", "rules.yml", "yml"} or name.split(".")[0] == "duckdb"
        if is_file or name.startswith("example"):
            continue
        assert f"fuseboard.{name}" in CONSTANTS or _is_importable(name.split(".")), name


def _is_importable(path: list[str]) -> bool:
    found: object = fuseboard
    known = "fuseboard"
    for part in path:
        known = f"{known}.{part}"
        if not hasattr(found, part):
            try:
                found = importlib.import_module(known)
            except ImportError:
                # The group of entry points; the beginning of several names, as in "instrument_…".
                return part == "classifiers" or any(one.startswith(part) for one in dir(found))
        else:
            found = getattr(found, part)
    return True


@of_every_page
def test_extras_that_are_named_exist(page: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"pip install '[^'\[]*\[([\w,-]+)\]'", page.read_text())
    extras = {extra for one in named for extra in one.split(",")}
    assert extras <= set(project["optional-dependencies"])


def test_the_map_has_every_page() -> None:
    map_ = ROOT / "docs" / "README.md"
    linked = {
        (map_.parent / link.partition("#")[0]).resolve()
        for link in re.findall(r"\]\(([^)\s]+)\)", map_.read_text())
    }
    wanted = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {map_}
    assert wanted <= linked


def test_the_map_explains_every_outcome() -> None:
    rows = table((ROOT / "docs" / "README.md").read_text(), "outcome")
    assert [row[0].strip("`") for row in rows] == [str(outcome) for outcome in fuseboard.Outcome]


def test_parts_that_the_architecture_names_exist() -> None:
    """Folders and modules in the table of the shim, and in what is said below it."""
    shim = ROOT / "instrumentation" / "fuseboard"
    text = section(
        (ROOT / "ARCHITECTURE.md").read_text(), "## `instrumentation/fuseboard`: the shim"
    )
    folders = set(re.findall(r"`([\w/]+)/`", text))
    assert {path.parent.relative_to(shim).as_posix() for path in shim.rglob("__init__.py")} == (
        folders | {"."}
    )
    for module in re.findall(r"`([\w/]+)\.py`", text):
        assert (shim / f"{module}.py").exists(), module
    modules = {path.stem for path in shim.rglob("*.py")}
    assert {path.stem for path in shim.glob("*.py")} - {"__init__"} <= {
        *re.findall(r"`([\w/]+)\.py`", text)
    }
    call = text[text.index("**The way of a call.**") : text.index("Wrappers and policies fill")]
    assert {*re.findall(r"`(\w+)`", call)} <= modules
