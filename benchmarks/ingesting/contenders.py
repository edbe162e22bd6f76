"""The servers under load: each a process with a data folder of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

HERE = Path(__file__).resolve().parent
_TICK = os.sysconf("SC_CLK_TCK")
_OTLP_LINE = re.compile(r"OTLP/HTTP\s+(http://\S+)")
STOP_SECONDS = 120.0

FOUND = {
    "reference": "SELECT span_id FROM spans",
    "fuseboard": """
        SELECT span_id FROM tool_calls
        UNION SELECT span_id FROM attempts WHERE span_id IS NOT NULL
        UNION SELECT span_id FROM spans
        UNION SELECT span_id FROM sightings""",
}
"""Every span id that a data file knows, each once."""


@dataclass
class Server:
    """A running contender."""

    name: str
    file: Path
    process: subprocess.Popen[str]
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    spans: int = 0
    ids: int = 0
    rounds: list[dict[str, float]] = field(default_factory=list)

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads of the process so far."""
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / _TICK

    def peak_megabytes(self) -> float:
        """Return the most memory the process has had so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found.group(1)) / 1024 if found else 0.0

    def load(self, requests: Path, **options: Any) -> dict[str, Any]:
        """Put it under load from another process; return what was acknowledged, and its price."""
        flags = [f"--{name}={value}" for name, value in options.items() if value is not True]
        flags += [f"--{name}" for name, value in options.items() if value is True]
        flags += [word for header in self.headers for word in ("--header", *header)]
        before = self.cpu_seconds()
        command = [sys.executable, "-m", "ingesting.load", f"{self.url}/v1/traces", str(requests)]
        done = subprocess.run(
            [*command, *flags],
            cwd=HERE.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        answer["cpu"] = self.cpu_seconds() - before
        self.spans += answer["spans"]
        self.ids = (self.ids + answer["ids"]) % 2**64
        return answer

    def stop(self) -> None:
        """Stop it in order: what it accepted is stored and the file checkpointed."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS)
        if self.process.stdout:
            self.process.stdout.close()

    def bytes_stored(self) -> int:
        """Return the size of its database once everything is in the file."""
        if self.name.partition(",")[0] in FOUND:
            with duckdb.connect(str(self.file)) as connection:
                connection.execute("CHECKPOINT").fetchall()
        return self.file.stat().st_size

    def lost(self) -> str | None:
        """Compare what the file holds with what was acknowledged; None if that is all there."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            count, ids = connection.execute(
                "SELECT count(*), sum(('0x' || span_id)::UBIGINT) % 18446744073709551616 "
                f"FROM ({FOUND[self.name.partition(',')[0]]})"
            ).fetchall()[0]
        if (count, int(ids or 0)) == (self.spans, self.ids):
            return None
        return f"{self.name}: {self.spans} spans were acknowledged, and {count} found"


def start(name: str, folder: Path) -> Server:
    """Start ``reference`` or ``fuseboard`` on an empty folder; what follows a comma is a label."""
    folder.mkdir(parents=True)
    if name.startswith("reference"):
        file = folder / "reference.duckdb"
        process = _start([sys.executable, str(HERE / "reference.py"), str(file)])
        assert process.stdout is not None
        return Server(name, file, process, f"http://127.0.0.1:{process.stdout.readline().strip()}")
    process = _start(
        [sys.executable, "-m", "fuseboard_server", "serve", f"--data={folder}", "--ui-port=0",
         "--otlp-http-port=0", "--otlp-grpc-port=off"]
    )  # fmt: skip
    return Server(name, folder / "fuseboard.duckdb", process, _announced(process))


def _announced(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = _OTLP_LINE.search(line)
        if found:
            return found.group(1)
    raise SystemExit("the server ended before it was ready")


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
