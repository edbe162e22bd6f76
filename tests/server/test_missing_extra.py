"""Without the extras, the console script says what is there and what to install."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from fuseboard_server.commands import COMMANDS
from fuseboard_server.exits import Exit
from fuseboard_server.main import MISSING_EXTRA, USAGE, explain_missing

WITHOUT = """
import sys
sys.modules[{module!r}] = None
from fuseboard_server.main import main
sys.argv = ["fuseboard", *{arguments!r}]
main()
"""


PIP_LINES = ("pip install 'fuseboard[dashboard]'", "pip install 'fuseboard[demo]'")


def run_without(
    module: str, arguments: list[str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(module=module, arguments=arguments)],
        capture_output=True, text=True, timeout=60, check=False, cwd=folder,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["--version"], ["-V"]])
def test_without_extras_version_and_help_work_and_say_what_is_there_and_what_not(
    tmp_path: Path, arguments: list[str]
) -> None:
    done = run_without("click", arguments, tmp_path)
    assert done.returncode == (Exit.OK if arguments else Exit.USAGE), "as with the extras"
    assert done.stderr == ""
    assert "import fuseboard" in done.stdout
    for line in PIP_LINES:
        assert line in done.stdout
    if arguments in (["--version"], ["-V"]):
        assert done.stdout.startswith(f"fuseboard, version {version('fuseboard')}\n")
    else:
        for name, (_, line) in COMMANDS.items():
            assert re.search(rf"^  {name} +{re.escape(line)}$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("module", ["click", "packaging"])
def test_doctor_without_its_packages_fails_with_the_same_hint(tmp_path: Path, module: str) -> None:
    done = run_without(module, ["doctor"], tmp_path)
    assert done.returncode == MISSING_EXTRA
    assert version("fuseboard") in done.stdout
    assert f"fail  packages: {module} is missing" in done.stdout
    for line in PIP_LINES:
        assert line in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("click", ["serve"], "fuseboard[dashboard]"),
        ("click", ["export", "calls", "--help"], "fuseboard[dashboard]"),
        ("uvicorn", ["serve", "--ui-port", "0", "--otlp-grpc-port", "off"], "fuseboard[dashboard]"),
        ("pyarrow", ["export", "calls"], "fuseboard[dashboard]"),
        ("httpx", ["demo"], "fuseboard[demo]"),
        ("mcp", ["demo"], "fuseboard[demo]"),
    ],
)
def test_a_missing_package_is_named_with_the_pip_line(
    tmp_path: Path, module: str, arguments: list[str], extra: str
) -> None:
    done = run_without(module, arguments, tmp_path)
    assert done.returncode == MISSING_EXTRA == Exit.MISSING_EXTRA
    assert repr(module) in done.stderr
    assert f"pip install '{extra}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    assert (MISSING_EXTRA, USAGE) == (Exit.MISSING_EXTRA, Exit.USAGE)


def test_a_submodule_names_its_own_extra() -> None:
    assert "fuseboard[demo]" in explain_missing("mcp.client")


def test_help_is_quick_because_no_command_is_imported() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from fuseboard_server.cli import root;"
        "assert CliRunner().invoke(root, ['--help']).exit_code == 0;"
        "print(sorted({'streamlit', 'duckdb', 'pandas', 'pyarrow', 'uvicorn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
