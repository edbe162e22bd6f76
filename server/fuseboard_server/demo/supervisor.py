"""Starts the processes of the demo, tells the story, and leaves no process behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeVar

from fuseboard_server import presence
from fuseboard_server.demo.folder import demo_folder
from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.processes import start, stop
from fuseboard_server.demo.scenario import DEFAULT_SCENARIO, Note, load
from fuseboard_server.exits import CommandError
from fuseboard_server.settings import DEFAULT_HOST, DEFAULT_OTLP_HTTP_PORT, DEFAULT_UI_PORT
from fuseboard_server.sockets import Wanted, bind_all
from fuseboard_server.stopping import stop_signals

START_SECONDS = 60.0
"""How long a process of the demo may take to get ready."""
LEAD_SECONDS = 1.5
"""Between the start of the agent's process and of the scenario."""
POLL_SECONDS = 0.1

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """What ``fuseboard demo`` was asked to do.

    Attributes:
        data: Data folder to use and keep; None for one that is removed at the end.
        speed: Scenario seconds per second.
        duration: Seconds after which the demo ends by itself; None for never.
    """

    data: Path | None = None
    ui_port: int = DEFAULT_UI_PORT
    otlp_http_port: int = DEFAULT_OTLP_HTTP_PORT
    metrics_port: int | None = None
    speed: float = 4.0
    seed: int = 1
    alert_time_scale: float = 0.1
    scenario: Path = DEFAULT_SCENARIO
    duration: float | None = None


class StopRequestedError(Exception):
    """Somebody asked the demo to stop."""


def run(settings: DemoSettings, say: Say) -> None:
    """Run the demo until SIGINT, SIGTERM, the end of the terminal or of its duration.

    Raises:
        CommandError: If one of its processes can't start, or ends by itself.
    """
    notes = load(settings.scenario).notes
    _require_free_ports(settings)
    with ExitStack() as stack:
        stack.enter_context(_signals_as_exceptions())
        try:
            _run(settings, say, notes, stack)
        except StopRequestedError:
            _say_last(say, "\nstopping the demo ...")
        finally:
            _ignore_signals()
    _say_last(say, "the demo has stopped; no process is left.")


def _require_free_ports(settings: DemoSettings) -> None:
    """Say of every port in use that it is, before the first process starts."""
    ports = {
        "--ui-port": settings.ui_port,
        "--otlp-http-port": settings.otlp_http_port,
        "--metrics-port": settings.metrics_port or 0,
    }
    try:
        listeners = bind_all(Wanted(DEFAULT_HOST, port, flag) for flag, port in ports.items())
    except CommandError as error:
        flags = " ".join(f"{flag} 0" for flag in ports if f"{flag} PORT" in error.message)
        hint = f'\nWith make, and any free port: make run ARGS="{flags}"'
        raise CommandError(error.message + hint, error.exit_code) from error
    for listener in listeners:
        listener.close()


def _say_last(say: Say, text: str) -> None:
    with suppress(OSError):  # the terminal may be what ended
        say(text)


def _run(settings: DemoSettings, say: Say, notes: Sequence[Note], stack: ExitStack) -> None:
    folder = stack.enter_context(demo_folder())
    data = settings.data or folder / "data"
    family = Family(stack)
    server = family.start("the server", _serve_command(settings, data))
    here = _wait(family, lambda: _presence_of(data, server), "the server")
    plan = Plan(
        scenario=str(settings.scenario.absolute()),
        started=time.time() + LEAD_SECONDS,
        speed=settings.speed,
        seed=settings.seed,
        folder=str(folder),
        collector=here.collector,
        metrics_port=settings.metrics_port,
    )
    # Orphans have nothing to finish, except for the server with what it has accepted.
    family.start("the backend", _module_command("backend", plan), signal.SIGKILL)
    _wait(family, lambda: plan.endpoints_path.exists() or None, "the backend")
    family.start("the agent", _module_command("agent", plan), signal.SIGKILL)
    say(f"\nThe demo agent plans trips. Watch {here.dashboard}/?range=5m; what happens when:\n")
    _tell(settings, plan, notes, family, say)


def _tell(
    settings: DemoSettings, plan: Plan, notes: Sequence[Note], family: Family, say: Say
) -> None:
    """Print each note when its time comes, and watch the processes meanwhile."""
    waiting = list(notes)
    began = time.monotonic()
    while settings.duration is None or time.monotonic() - began < settings.duration:
        while waiting and plan.elapsed() >= waiting[0].at:
            note = waiting.pop(0)
            seconds = int(plan.real(note.at))
            say(f"  {seconds // 60}:{seconds % 60:02d}  {note.text}")
        family.check()
        time.sleep(POLL_SECONDS)


class Family:
    """The processes of one demo; they are stopped in the reverse order of their start."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._members: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(
        self, name: str, command: Sequence[str], orphaned: signal.Signals = signal.SIGTERM
    ) -> subprocess.Popen[bytes]:
        """Start one more; ``orphaned`` ends it if this process is killed."""
        process = start(command, orphaned=orphaned)
        self._stack.callback(stop, process)
        self._members.append((name, process))
        return process

    def check(self) -> None:
        """Fail if one has ended by itself; its own message is above."""
        for name, process in self._members:
            code = process.poll()
            if code is not None:
                raise CommandError(f"{name} of the demo ended with exit code {code}", max(code, 1))


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    def raise_stopped(_number: int, _frame: FrameType | None) -> None:
        _ignore_signals()
        raise StopRequestedError

    before = {number: signal.signal(number, raise_stopped) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_signals() -> None:
    """From the first request to stop on, an impatient second one must not leave processes."""
    for number in stop_signals():
        signal.signal(number, signal.SIG_IGN)


def _wait(family: Family, ready: Callable[[], T | None], name: str) -> T:
    deadline = time.monotonic() + START_SECONDS
    while not (found := ready()):
        family.check()
        if time.monotonic() > deadline:
            raise CommandError(f"{name} of the demo was not ready within {START_SECONDS:g} s")
        time.sleep(POLL_SECONDS)
    return found


def _presence_of(data: Path, server: subprocess.Popen[bytes]) -> presence.Presence | None:
    found = presence.read(data)
    return found if found is not None and found.pid == server.pid else None


def _serve_command(settings: DemoSettings, data: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "fuseboard_server", "serve", "--demo"),
        *("--data", str(data)),
        *("--ui-port", str(settings.ui_port)),
        *("--otlp-http-port", str(settings.otlp_http_port)),
        *("--otlp-grpc-port", "off"),  # the agent does not need it, another server may
        *("--alert-time-scale", str(settings.alert_time_scale)),
    ]


def _module_command(name: str, plan: Plan) -> list[str]:
    return [sys.executable, "-m", f"fuseboard_server.demo.{name}", plan.to_json()]
