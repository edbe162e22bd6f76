"""The files that set the project up: they parse, pin, and name no package source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SCRIPTS = [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci" / "run"]


ADAPTERS = ROOT / "tests" / "adapters"
ENVIRONMENTS = tomllib.loads((ADAPTERS / "environments.toml").read_text())
FRAMEWORKS = {about["extra"] for about in ENVIRONMENTS.values() if "extra" in about}


def constraints(path: Path = ROOT / "constraints.txt") -> dict[str, str]:
    lines = path.read_text().splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pins}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


def extras() -> dict[str, list[str]]:
    return project()["optional-dependencies"]  # type: ignore[return-value]


def requirements() -> list[Requirement]:
    """Return what the environment of the project may hold: all but the frameworks."""
    own = [lines for name, lines in extras().items() if name not in FRAMEWORKS]
    lists = [project()["dependencies"], *own]
    return [Requirement(line) for one in lists for line in one]  # type: ignore[attr-defined]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse_and_can_be_run(script: Path, shell: str) -> None:
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert os.access(script, os.X_OK)
    assert "set -eu" in script.read_text()


def test_every_requirement_is_pinned_to_a_version_that_it_allows() -> None:
    pins = constraints()
    for requirement in requirements():
        if requirement.name == "fuseboard":
            continue
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_framework_is_pinned_in_its_environment(environment: str) -> None:
    pins = constraints(ADAPTERS / "pins" / f"{environment}.txt")
    for line in extras().get(ENVIRONMENTS[environment].get("extra", ""), []):
        requirement = Requirement(line)
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


@pytest.mark.parametrize(
    "path",
    [ROOT / "constraints.txt", *sorted((ADAPTERS / "pins").glob("*.txt"))],
    ids=lambda path: path.stem,
)
def test_constraints_hold_versions_only(path: Path) -> None:
    for name, version in constraints(path).items():
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name)
        assert re.fullmatch(r"\d[\w.]*", version), name


@pytest.mark.parametrize(
    "name",
    ["constraints.txt", "Makefile", ".ci/run", "scripts/setup.sh", "scripts/system_packages.sh",
     "pyproject.toml", ".pre-commit-config.yaml"],
)  # fmt: skip
def test_no_file_says_where_packages_come_from(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "index-url" not in text
    assert "find-links" not in text
    assert "://" not in text.replace("http://127.0.0.1", "")
    assert "-e " not in (ROOT / "constraints.txt").read_text().split("\n", 3)[3]


def test_ci_runs_make_test_and_says_that_it_is_ci() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert "export CI=true" in text
    assert "make test" in text


def test_make_help_lists_every_target() -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    shown = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    for target in ("run", "test", "test-all", "check", "bench", "screenshots", "clean"):
        assert re.search(rf"make {target} +[A-Z]", shown.stdout), target


def fake_python(folder: Path, text: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def setup(python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", ROOT / "scripts" / "setup.sh", "demo"],
        capture_output=True, text=True, check=False, timeout=60,
        env={"PATH": os.environ["PATH"], "PYTHON": python, "VENV": "/nonexistent/venv",
             **environment},
    )  # fmt: skip


def test_setup_refuses_an_old_python_and_says_so(tmp_path: Path) -> None:
    done = setup(str(fake_python(tmp_path, "exit 1")))
    assert done.returncode == 1
    assert "3.11" in done.stderr


def test_setup_names_the_venv_package_where_it_can_not_install_it(tmp_path: Path) -> None:
    for tool in ("sh", "cat", "cksum", "dirname", "id", "pwd", "sed", "tr"):
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    python = fake_python(
        tmp_path,
        'case "$*" in *ensurepip*) exit 1;; *print*) echo python3.11-venv;; esac',
    )
    done = setup(str(python), PATH=str(tmp_path))
    assert done.returncode == 1
    assert "apt-get install python3.11-venv" in done.stderr
    assert not Path("/nonexistent/venv").exists()


def test_missing_system_packages_are_named_without_root(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        # As root the script would install; a PATH without apt-get and id is nobody's.
        for tool in ("sh", "dpkg", "id"):
            found = shutil.which(tool)
            assert found
            (tmp_path / tool).symlink_to(found)
        path = str(tmp_path)
    else:
        path = os.environ["PATH"]
    script = ROOT / "scripts" / "system_packages.sh"
    sh = shutil.which("sh")
    assert sh
    wanted = ["no-such-package-of-debian"]
    soft = subprocess.run([sh, script, *wanted], capture_output=True, text=True, env={"PATH": path})
    assert soft.returncode == 0
    assert f"apt-get install --no-install-recommends {wanted[0]}" in soft.stderr
    hard = subprocess.run(
        [sh, script, "--required", *wanted], capture_output=True, text=True, env={"PATH": path}
    )
    assert hard.returncode == 1
