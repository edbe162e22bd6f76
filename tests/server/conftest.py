"""Real processes of the command line, on free ports, gone after each test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.processes import free_port, wait_until

ROOT = Path(__file__).parents[2]
FUSEBOARD = (sys.executable, "-m", "fuseboard_server")


@dataclass
class Running:
    """One `fuseboard …` process with its output in files."""

    arguments: tuple[str, ...]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> str:
        return (self.folder / "out.txt").read_text()

    @property
    def errors(self) -> str:
        return (self.folder / "err.txt").read_text()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> Running:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (
            (self.folder / "out.txt").open("wb") as out,
            (self.folder / "err.txt").open("wb") as err,
        ):
            self.process = subprocess.Popen(
                [*FUSEBOARD, *self.arguments],
                stdout=out, stderr=err, start_new_session=True, cwd=self.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
            )  # fmt: skip
        return self

    def wait_for(self, text: str, seconds: float = 60) -> None:
        def seen() -> bool:
            assert self.process is not None
            if text not in self.output and self.process.poll() is not None:
                pytest.fail(f"ended with {self.process.returncode}: {self.output}{self.errors}")
            return text in self.output

        wait_until(seen, seconds=seconds, what=f"the output {text!r}")

    def end(self, number: signal.Signals = signal.SIGINT, seconds: float = 30) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=seconds)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start `fuseboard` with some arguments."""
    started: list[Running] = []

    def run(*arguments: str, **environment: str) -> Running:
        folder = tmp_path / f"process-{len(started)}"
        running = Running(arguments, folder, environment).start()
        started.append(running)
        return running

    yield run
    for running in started:
        if running.process is not None and running.process.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.process.wait(timeout=10)


@dataclass
class Served:
    """A `fuseboard serve` that is ready."""

    running: Running
    data: Path
    ui_port: int
    otlp_port: int
    grpc_port: int

    @property
    def otlp_url(self) -> str:
        return f"http://127.0.0.1:{self.otlp_port}"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self.ui_port}"


@pytest.fixture
def serve(start: Callable[..., Running], tmp_path: Path) -> Callable[..., Served]:
    """Start `fuseboard serve` on free ports and wait until it is ready."""

    def run(*options: str, data: Path | None = None) -> Served:
        folder = data or tmp_path / "data"
        ui, otlp, grpc = free_port(), free_port(), free_port()
        running = start(
            "serve", "--data", str(folder),
            "--ui-port", str(ui), "--otlp-http-port", str(otlp), "--otlp-grpc-port", str(grpc),
            *options,
        )  # fmt: skip
        running.wait_for("Ctrl-C stops it.")
        return Served(running, folder, ui, otlp, grpc)

    return run


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run one `fuseboard` command to its end, with a home folder of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        base = {k: v for k, v in os.environ.items() if not k.startswith("FUSEBOARD_")}
        return subprocess.run(
            [*FUSEBOARD, *arguments],
            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
            env={**base, "XDG_DATA_HOME": str(tmp_path / "xdg"), **environment},
        )  # fmt: skip

    return run
