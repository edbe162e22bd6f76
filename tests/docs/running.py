"""How tests run a page's code: as a user would, but on free ports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

NOBODY = "http://127.0.0.1:9"
"""The port of the discard service, which nobody runs."""


def run_python(code: str, folder: Path) -> str:
    """Run code as a user would, but on free ports and without a server that may run here.

    Returns:
        What it printed.
    """
    script = folder / "block.py"
    code = code.replace("metrics_port=9464", "metrics_port=0")
    script.write_text(code.replace("http://127.0.0.1:4318", NOBODY))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        env={**os.environ, "FUSEBOARD_ENDPOINT": NOBODY},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
