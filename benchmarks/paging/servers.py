"""What the benchmark of pages starts: fuseboard on a large store, the floor, and an agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent
READY_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs.

    Attributes:
        url: Where its pages are.
        pid: Its process.
    """

    url: str
    pid: int

    def memory(self) -> float:
        """Return its resident memory in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1000


@contextmanager
def fuseboard(data: Path, log: Path) -> Iterator[tuple[Served, str]]:
    """Run ``fuseboard serve``; yield its pages, and where it takes OTLP."""
    ui, otlp = measuring.free_port(), measuring.free_port()
    command = [
        str(Path(sys.executable).with_name("fuseboard")), "serve", "--data", str(data),
        "--ui-port", str(ui), "--otlp-http-port", str(otlp), "--otlp-grpc-port", "0",
    ]  # fmt: skip
    with _running(command, log, f"http://127.0.0.1:{ui}", "/readyz") as served:
        yield served, f"http://127.0.0.1:{otlp}"


@contextmanager
def floor(log: Path) -> Iterator[Served]:
    """Run the two lines of ``floor.py``."""
    port = measuring.free_port()
    command = [sys.executable, str(HERE / "floor_server.py"), str(port)]
    with _running(command, log, f"http://127.0.0.1:{port}", "/_stcore/health") as served:
        yield served


@contextmanager
def agent(otlp_url: str) -> Iterator[None]:
    """Run an agent that calls tools all the time, so that every refresh has something new."""
    process = subprocess.Popen([sys.executable, str(HERE / "agent.py"), otlp_url])
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def _running(command: Sequence[str], log: Path, url: str, health: str) -> Iterator[Served]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(url + health):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[:3]} did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.1)
        yield Served(url, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
