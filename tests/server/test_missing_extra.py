"""Without the extra, the console script says which one to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuseboard_server.exits import Exit
from fuseboard_server.main import MISSING_EXTRA, explain_missing

WITHOUT = """
import sys
sys.modules[{module!r}] = None
from fuseboard_server.main import main
sys.argv = ["fuseboard", *{arguments!r}]
main()
"""


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("click", ["--help"], "fuseboard[dashboard]"),
        ("uvicorn", ["serve", "--ui-port", "0", "--otlp-http-port", "0"], "fuseboard[dashboard]"),
        ("pyarrow", ["export", "calls"], "fuseboard[dashboard]"),
        ("httpx", ["demo"], "fuseboard[demo]"),
        ("mcp", ["demo"], "fuseboard[demo]"),
    ],
)
def test_a_missing_package_is_named_with_the_pip_line(
    tmp_path: Path, module: str, arguments: list[str], extra: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(module=module, arguments=arguments)],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == MISSING_EXTRA == Exit.MISSING_EXTRA
    assert repr(module) in done.stderr
    assert f"pip install '{extra}'" in done.stderr
    assert "Traceback" not in done.stderr


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
