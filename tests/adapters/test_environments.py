"""Runs each adapter's tests in an environment of its own, with the framework they are about."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    path = ROOT / "scripts" / "adapter_environments.py"
    spec = importlib.util.spec_from_file_location("adapter_environments", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


harness = _load()
ENVIRONMENTS = harness.environments()


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_adapter_works_with_its_framework(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    environment = ENVIRONMENTS[name]
    with capsys.disabled():
        harness.make(environment, lambda line: print(f"\n{line}", end="", flush=True))
    assert harness.run_tests(environment, ["-q", "-p", "no:cacheprovider"]) == 0


def test_every_environment_has_tests_an_extra_and_pins() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for environment in ENVIRONMENTS.values():
        assert list((harness.TESTS / environment.tests).glob("test_*.py")), environment.name
        assert environment.extra in (*extras, ""), environment.name
        pins = environment.pins.read_text().splitlines()
        assert pins, environment.name
        # Versions, and not a word on where packages come from.
        assert all(line.startswith("#") or line.count("==") == 1 for line in pins)
        assert not any("://" in line or "@" in line for line in pins), environment.name


def test_every_framework_is_tested_in_its_oldest_release_too() -> None:
    for environment in ENVIRONMENTS.values():
        oldest = [one for one in ENVIRONMENTS.values() if one.tests == environment.tests]
        assert any(one.name.endswith("-oldest") for one in oldest), environment.tests


def test_every_folder_of_tests_has_an_environment() -> None:
    folders = {path.parent.name for path in harness.TESTS.glob("*/test_*.py")}
    assert folders == {environment.tests for environment in ENVIRONMENTS.values()}


def test_an_environment_that_cannot_be_made_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "FOLDER", tmp_path)
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness, "_install_with_uv", lambda *_: "uv: no route")
    monkeypatch.setattr(harness, "_install_with_pip", lambda *_: "pip: no such package")
    monkeypatch.setattr(harness.Environment, "fingerprint", lambda self: "new")
    environment = harness.Environment("made-up", "nothing", (), "nothing")
    with pytest.raises(SystemExit, match=r"made-up.*\n.*no route\n.*no such package"):
        harness.make(environment, print)
