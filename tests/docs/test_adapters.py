"""The page on adapters names every adapter, with the releases that its tests run in."""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from fuseboard import adapters

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text()
ENVIRONMENTS = tomllib.loads((ROOT / "tests" / "adapters" / "environments.toml").read_text())
ALL = sorted(
    name.removeprefix("instrument_") for name in adapters.__all__ if name.startswith("instrument_")
)
# The others listen to libraries that retry, which an application brings itself.
FRAMEWORKS = [
    name
    for name in ALL
    if (package := getattr(import_module(f"fuseboard.adapters.{name}"), "PACKAGE", None))
    and package.extra
]
ROWS = {
    cells[1].strip("`").removeprefix("instrument_"): cells
    for line in PAGE.splitlines()
    if line.startswith("|")
    and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 5
}


def _pinned(environment: str, package: str) -> str:
    pins = (ROOT / "tests" / "adapters" / "pins" / f"{environment}.txt").read_text()
    found = re.search(rf"^{re.escape(package)}==(\S+)$", pins, re.MULTILINE | re.IGNORECASE)
    assert found is not None, (environment, package)
    return found[1]


def test_every_adapter_has_a_row() -> None:
    assert sorted(ROWS.keys() - {"function", "---"}) == FRAMEWORKS


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_row_says_what_the_adapter_needs_and_what_it_is_tested_with(framework: str) -> None:
    package = import_module(f"fuseboard.adapters.{framework}").PACKAGE
    _, function, extra, name, releases = ROWS[framework]
    assert (function, extra) == (f"`instrument_{framework}`", f"`{package.extra}`")
    assert name == package.name
    environments = [one for one in ENVIRONMENTS if one.partition("-")[0] == framework]
    oldest = f"{framework}-oldest"
    assert set(releases.split(", ")) == {_pinned(one, name) for one in environments}
    assert _pinned(oldest, name).startswith(package.oldest), "the oldest is not the oldest tested"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_extra_allows_what_the_adapter_allows(framework: str) -> None:
    package = import_module(f"fuseboard.adapters.{framework}").PACKAGE
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (requirement,) = extras[package.extra]
    found = re.fullmatch(rf"{re.escape(package.name)}>=([\d.]+),<([\d.]+)", requirement)
    assert found is not None, requirement
    low, high = (tuple(map(int, version.split("."))) for version in found.groups())
    oldest = tuple(map(int, package.oldest.split(".")))
    width = max(len(low), len(oldest))
    assert low + (0,) * (width - len(low)) == oldest + (0,) * (width - len(oldest))
    assert high == tuple(map(int, package.below.split(".")))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_option_is_on_the_page(framework: str) -> None:
    function = getattr(adapters, f"instrument_{framework}")
    for name in inspect.signature(function).parameters:
        assert re.search(rf"^\| .*`{name}`.* \|", PAGE, re.MULTILINE), name


def test_every_adapter_is_exported_with_its_counterpart() -> None:
    assert adapters.__all__ == sorted(adapters.__all__)
    assert {f"uninstrument_{one}" for one in ALL} <= set(adapters.__all__)
    with pytest.raises(AttributeError, match="instrument_nothing"):
        adapters.instrument_nothing  # noqa: B018
    assert set(adapters.__all__) <= set(dir(adapters))
