"""Make an environment for each framework that has an adapter, and run the adapter's tests in it.

    python scripts/adapter_environments.py [--list] [--make] [--pin] [NAME...]

``tests/adapters/environments.toml`` says what is in an environment, ``tests/adapters/pins`` in
which releases. Environments lie in ``.venv-adapters`` and are kept while that does not change.
They are filled by uv where it works, else by pip: uv does not read pip's configuration.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TESTS: Final = ROOT / "tests" / "adapters"
FOLDER: Final = ROOT / ".venv-adapters"
VARIABLE: Final = "FUSEBOARD_ADAPTER_ENVIRONMENT"
"""Set for tests that run in an environment of their own; holds its name."""

_TOOLS: Final = ("pytest>=9.2,<10", "pytest-asyncio>=1.5,<2", "pytest-timeout>=2.4,<3")
_STAMP: Final = "fuseboard-environment"
_HEADER: Final = '# Written by `make adapters ARGS="--pin {}"`; versions only.\n'


@dataclass(frozen=True)
class Environment:
    """An environment of one framework in one release."""

    name: str
    extra: str
    packages: tuple[str, ...]
    tests: str

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return FOLDER / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def pins(self) -> Path:
        """Its releases."""
        return TESTS / "pins" / f"{self.name}.txt"

    @property
    def wanted(self) -> list[str]:
        """What is installed into it, as pip's arguments."""
        extra = f"[{self.extra}]" if self.extra else ""
        return ["-e", f"{ROOT}{extra}", *_TOOLS, *self.packages]

    def fingerprint(self) -> str:
        """Return what changes when the environment has to be made anew."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        parts = [
            sys.version,
            str(ROOT),
            str(project["dependencies"]),
            str(project["optional-dependencies"].get(self.extra)),
            *self.wanted,
            self.pins.read_text() if self.pins.exists() else "",
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def environments() -> dict[str, Environment]:
    """Return all environments by name, in the order of the file."""
    found = tomllib.loads((TESTS / "environments.toml").read_text())
    return {
        name: Environment(
            name,
            extra=entry.get("extra", ""),
            packages=tuple(entry.get("packages", ())),
            tests=entry.get("tests", name.partition("-")[0]),
        )
        for name, entry in found.items()
    }


def make(environment: Environment, say: Callable[[str], None], *, newest: bool = False) -> None:
    """Make an environment, unless it is there as it should be.

    Args:
        environment: Which one.
        say: Shows progress.
        newest: Whether its pins are ignored.

    Raises:
        SystemExit: If the packages can't be installed; says which and why.
    """
    stamp = environment.folder / _STAMP
    fingerprint = environment.fingerprint()
    if not newest and stamp.exists() and stamp.read_text() == fingerprint:
        return
    say(f"making {environment.name} in {environment.folder.relative_to(ROOT)}")
    began = time.monotonic()
    shutil.rmtree(environment.folder, ignore_errors=True)
    FOLDER.mkdir(exist_ok=True)
    pins = [] if newest else ["-c", str(environment.pins)]
    errors: list[str] = []
    for install in (_install_with_uv, _install_with_pip):
        problem = install(environment, pins)
        if problem is None:
            break
        errors.append(problem)
    else:
        raise SystemExit(f"{environment.name} could not be installed:\n" + "\n".join(errors))
    if not newest:
        stamp.write_text(fingerprint)
    say(f"made {environment.name} in {time.monotonic() - began:.0f} s")


def run_tests(environment: Environment, arguments: Iterable[str] = ()) -> int:
    """Run the tests of an environment in it and return pytest's exit code."""
    tests = [str(TESTS / environment.tests), str(TESTS / "documented_examples.py")]
    command = [str(environment.python), "-m", "pytest", *tests, *arguments]
    # A plugin that the outer pytest asks for need not be in here.
    skipped = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONPATH"}
    variables = {key: value for key, value in os.environ.items() if key not in skipped}
    variables[VARIABLE] = environment.name
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode


def pin(environment: Environment, say: Callable[[str], None]) -> None:
    """Install the newest releases that an environment allows and write them down."""
    make(environment, say, newest=True)
    script = (
        "from importlib.metadata import distributions as d;"
        "print('\\n'.join(sorted({f\"{x.name.lower().replace('_', '-')}=={x.version}\""
        " for x in d() if x.name.lower() not in ('fuseboard', 'pip', 'setuptools')})))"
    )
    command = [str(environment.python), "-c", script]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    environment.pins.parent.mkdir(exist_ok=True)
    environment.pins.write_text(_HEADER.format(environment.name) + listed)
    (environment.folder / _STAMP).write_text(environment.fingerprint())
    say(f"wrote {environment.pins.relative_to(ROOT)}")


def _install_with_uv(environment: Environment, pins: list[str]) -> str | None:
    """Install with uv and return what went wrong."""
    uv = Path(sys.executable).parent / "uv"
    found = str(uv) if uv.exists() else shutil.which("uv")
    if found is None:
        return "uv: is not installed"
    folder = str(environment.folder)
    return _problem_of([found, "venv", "-q", "--python", sys.executable, folder]) or _problem_of(
        [
            found,
            "pip",
            "install",
            "-q",
            "--python",
            str(environment.python),
            *environment.wanted,
            *pins,
        ]
    )


def _install_with_pip(environment: Environment, pins: list[str]) -> str | None:
    """Do the same with pip, which knows where its user's packages come from."""
    return _problem_of(
        [sys.executable, "-m", "venv", "--clear", str(environment.folder)]
    ) or _problem_of(
        [str(environment.python), "-m", "pip", "install", "-qq", *environment.wanted, *pins]
    )


def _problem_of(command: list[str]) -> str | None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return f"{Path(command[0]).name}: {(done.stderr or done.stdout)[-2000:]}"


def main() -> int:
    """Make and test the named environments, or all, and return how many failed."""
    known = environments()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="list the environments")
    parser.add_argument("--make", action="store_true", help="make them and run no test")
    parser.add_argument("--pin", action="store_true", help="take the newest releases")
    parser.add_argument("-k", metavar="WORDS", help="run only tests with these words")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - known.keys()):
        parser.error(f"there is no environment {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in given.names or known]
    if given.list:
        print("\n".join(one.name for one in chosen))
        return 0
    failed = []
    for one in chosen:
        (pin if given.pin else make)(one, lambda line: print(f"== {line}", flush=True))
        if not given.make:
            print(f"== testing in {one.name}", flush=True)
            if run_tests(one, ["-q", *(("-k", given.k) if given.k else ())]):
                failed.append(one.name)
    if failed:
        print(f"== failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
