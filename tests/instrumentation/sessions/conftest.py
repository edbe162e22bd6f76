from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a script in a process of its own, which may be killed by what it tests."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "script.py"
        path.write_text(script)
        return subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False
        )

    return run
