"""The sign of life of a process: without it an open breaker looks like a dead process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from fuseboard import conventions as c
from fuseboard.conventions import BreakerState
from fuseboard.record import BreakerStatus, CallRecord
from fuseboard.telemetry.attributes import Attributes
from fuseboard.telemetry.losses import Reason, Signal
from fuseboard.telemetry.redaction import name
from fuseboard.telemetry.spans import OpenCall
from fuseboard.telemetry.tool_span import ToolSpan

LONG_CALL_SECONDS: Final = 5.0
MAX_LISTED: Final = 100


def heartbeat_attributes(
    breakers: Iterable[BreakerStatus],
    long_calls: Iterable[CallRecord],
    dropped: Mapping[tuple[Signal, Reason], int],
    overflow: Mapping[str, int],
) -> Attributes:
    """Return the attributes of a heartbeat event; its lists are JSON text.

    Args:
        breakers: All breakers; those that are closed are left out.
        long_calls: The calls that have run for long.
        dropped: Lost records by signal and reason.
        overflow: Folded label values by label.
    """
    unhealthy = [_breaker(b) for b in breakers if b.state is not BreakerState.CLOSED]
    lost = {f"{signal.value}/{reason.value}": n for (signal, reason), n in dropped.items() if n}
    folded = {label: count for label, count in overflow.items() if count}
    return {
        c.HEARTBEAT_BREAKERS: _json(unhealthy[:MAX_LISTED]),
        c.HEARTBEAT_CALLS_IN_FLIGHT: _json([_call(call) for call in long_calls]),
        c.HEARTBEAT_DROPPED: _json(lost),
        c.HEARTBEAT_OVERFLOW: _json(folded),
    }


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _time(unix_ns: int) -> str:
    moment = datetime.fromtimestamp(unix_ns / 1e9, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _name(text: str | None) -> str | None:
    return None if text is None else name(text)


def _breaker(status: BreakerStatus) -> dict[str, object]:
    return {
        "breaker": name(status.name),
        "tool": name(status.tool),
        "region": _name(status.region),
        "upstream": _name(status.upstream),
        "state": status.state.value,
        "since": _time(status.since_unix_ns),
    }


def _call(call: CallRecord) -> dict[str, object]:
    open_call = call.telemetry
    identity = open_call.identity if isinstance(open_call, OpenCall | ToolSpan) else None
    return {
        "tool": name(call.tool.name),
        "region": _name(call.region),
        "trace_id": f"{identity.trace_id:032x}" if identity else None,
        "span_id": f"{identity.span_id:016x}" if identity else None,
        "start": _time(call.started_unix_ns),
        "args_hash": call.args_hash,
    }


class Pulse:
    """A daemon thread that calls ``beat`` at a steady interval.

    Args:
        beat: Sends one heartbeat; must not raise.
        seconds: The interval.
    """

    def __init__(self, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self.after_fork()

    def after_fork(self) -> None:
        """Forget the parent's thread."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Beat at once, and then at every interval; starting twice does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="fuseboard-heartbeat", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        self._beat()
        while not self._stop.wait(self._seconds):
            self._beat()

    def stop(self) -> None:
        """Beat no more."""
        self._stop.set()
