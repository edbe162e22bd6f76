"""The public API's names and types are tested API."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fuseboard

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def test_tools_keep_their_types_under_mypy_strict(tmp_path: Path) -> None:
    # --strict reports an ignored error that no longer occurs, so the file can't go stale.
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent",
            "--config-file", "/dev/null",
            "--cache-dir", str(tmp_path), str(HERE / "consumer.py"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "instrumentation"), "PATH": "/usr/bin:/bin"},
        timeout=170,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_exports_are_sorted_and_there() -> None:
    assert fuseboard.__all__ == sorted(fuseboard.__all__)
    for name in fuseboard.__all__:
        assert getattr(fuseboard, name) is not None, name


def test_import_is_light() -> None:
    heavy = ("requests", "httpx", "pydantic", "duckdb", "pandas", "streamlit", "google.protobuf",
             "opentelemetry.exporter.otlp.proto.http", "importlib.metadata")  # fmt: skip
    script = f"import sys, fuseboard; print([m for m in {heavy[:-1]!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
