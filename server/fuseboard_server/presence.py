"""The note that a running server leaves in its data folder, so that others can find it."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import asdict, dataclass
from http.client import HTTPException
from pathlib import Path

from fuseboard_server.exits import CommandError

NOTE_FILE = "server.json"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Past the environment's proxies, as telemetry and the read API go."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Where a server can be reached.

    Attributes:
        pid: Its process id.
        dashboard: Address that the dashboard listens on.
        collector: Address of OTLP/HTTP and of the read API.
        grpc: Host and port of OTLP/gRPC; empty where it is off.
        public: Address of the dashboard through a reverse proxy; empty without one.
        login: How people log in to the dashboard, in words; empty: nobody has to.
    """

    pid: int
    dashboard: str
    collector: str
    grpc: str = ""
    public: str = ""
    login: str = ""

    @property
    def address(self) -> str:
        """Return where people open the dashboard."""
        return self.public or self.dashboard


def announce(data: Path, presence: Presence) -> None:
    """Write the note; a reader sees the whole of it or none."""
    temporary = data / f".{NOTE_FILE}.{presence.pid}"
    temporary.write_text(json.dumps(asdict(presence)))
    temporary.replace(data / NOTE_FILE)


def withdraw(data: Path) -> None:
    """Remove this process's own note."""
    presence = read(data)
    if presence is not None and presence.pid == os.getpid():
        (data / NOTE_FILE).unlink(missing_ok=True)


def read(data: Path) -> Presence | None:
    """Return the note in a data folder; None if there is none or it can't be read."""
    try:
        fields = json.loads((data / NOTE_FILE).read_text())
        return Presence(
            int(fields["pid"]),
            str(fields["dashboard"]),
            str(fields["collector"]),
            str(fields.get("grpc", "")),
            str(fields.get("public", "")),
            str(fields.get("login", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def running(data: Path) -> Presence | None:
    """Return the note of a server that is alive and answers; a killed server leaves a stale one."""
    presence = read(data)
    if presence is None or not is_alive(presence.pid) or not answers(presence.collector):
        return None
    return presence


def is_alive(pid: int) -> bool:
    """Tell whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def require_answer(collector: str) -> None:
    """Refuse an address at which no fuseboard answers.

    Raises:
        CommandError: If none does.
    """
    if not answers(collector):
        raise CommandError(
            f"no fuseboard answers at {collector}. Start one with `fuseboard serve`, or name the "
            "address after 'OTLP/HTTP' that a running one printed with --collector URL."
        )


def answers(url: str, timeout: float = 3.0) -> bool:
    """Tell whether a fuseboard collector answers at an address.

    Args:
        url: Base address, for example ``http://127.0.0.1:4318``.
        timeout: Seconds to wait.
    """
    if not url.startswith(("http://", "https://")):
        return False
    try:
        with _DIRECT.open(f"{url.rstrip('/')}/healthz", timeout=timeout) as response:
            return bool(response.status == 200)
    except (OSError, ValueError, HTTPException):
        return False
