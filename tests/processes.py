"""What tests of real processes share: `fuseboard serve` on free ports, and its exports."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FUSEBOARD = Path(sys.executable).parent / "fuseboard"


_given: set[int] = set()


def free_port() -> int:
    """Return a port that nobody listens on and that was not returned before."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _given:
            _given.add(port)
            return port


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Poll until the condition holds, or fail naming what did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not happen within {seconds} s")
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Tell whether a request is answered with 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@dataclass
class Server:
    """One ``fuseboard serve`` on fixed ports and a fixed data folder; may be restarted."""

    data: Path
    log: Path
    options: tuple[str, ...] = ()
    ui_port: int = field(default_factory=free_port)
    otlp_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def otlp_url(self) -> str:
        return f"http://127.0.0.1:{self.otlp_port}"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self.ui_port}"

    def start(self) -> Server:
        command = [
            str(FUSEBOARD), "serve", "--data", str(self.data),
            "--ui-port", str(self.ui_port), "--otlp-http-port", str(self.otlp_port),
            "--otlp-grpc-port", "0", *self.options,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **self.environment}
            )
        wait_until(self.is_ready, seconds=60, what="readiness")
        return self

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        return answers(f"{self.otlp_url}/readyz")

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Stop as Ctrl-C does and return the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)

    def end(self) -> None:
        """Make sure that it is gone, in whatever state it was."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def export(self, kind: str, *more: str) -> list[dict[str, Any]]:
        """Return the records of ``fuseboard export`` from the running server."""
        return export_records(kind, "--collector", self.otlp_url, *more)

    def copy_data(self, folder: Path) -> Path:
        """Back the data up into a new folder inside this one, and return that."""
        copied = folder / "data"
        copied.mkdir()
        done = subprocess.run(
            [str(FUSEBOARD), "backup", "--collector", self.otlp_url,
             str(copied / "fuseboard.duckdb")],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return copied

    def export_at_rest(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of ``fuseboard export`` from the data folder."""
        return export_records(kind, "--data", str(self.data))

    def assert_each_call_once(self, total: int) -> None:
        """Check that the server has so many successful calls and none of them twice."""
        calls = self.export("calls")
        assert len(calls) == total
        assert len({(call["trace_id"], call["span_id"]) for call in calls}) == total
        assert {call["outcome"] for call in calls} == {"ok"}


def export_records(kind: str, *options: str) -> list[dict[str, Any]]:
    """Run ``fuseboard export`` and return its JSON lines."""
    done = subprocess.run(
        [str(FUSEBOARD), "export", kind, "--format", "jsonl", *options],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
