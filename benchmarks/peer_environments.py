"""Virtual environments of products that are measured too: each has one of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / ".venv-peers"
PINS = HERE / "peers.txt"


def python_with(name: str, wanted: Sequence[str]) -> Path:
    """Return the Python of an environment; it is made where it is missing.

    Args:
        name: Of the environment.
        wanted: What to install, in the versions of ``peers.txt`` where it names them.
    """
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {wanted[0]} …", file=sys.stderr, flush=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
        install = [str(python), "-m", "pip", "install", "--quiet"]
        uv = shutil.which("uv", path=str(Path(sys.executable).parent))
        if uv:
            install = [uv, "pip", "install", "--quiet", "--python", str(python)]
        command = [*install, "--constraint", str(PINS), *wanted]
        done = made.returncode or subprocess.run(command, check=False).returncode
        if done:
            shutil.rmtree(folder, ignore_errors=True)
            raise SystemExit(f"could not install {wanted[0]}; the messages above say why")
    return python
