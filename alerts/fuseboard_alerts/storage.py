"""What the evaluator keeps in the store: its memory, and the history of every instance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from fuseboard_alerts.state import Instance, State
from fuseboard_collector.reading import Reader

_TIME = pa.timestamp("us")
_EVENTS = pa.schema(
    [
        ("time", _TIME),
        ("alert", pa.string()),
        ("severity", pa.string()),
        ("labels", pa.string()),
        ("state", pa.string()),
        ("active_at", _TIME),
        ("fired_at", _TIME),
        ("resolved_at", _TIME),
        ("value", pa.float64()),
        ("peak", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the history: an instance of an alert entered a state."""

    alert: str
    severity: str
    instance: Instance
    state: State
    at: datetime


class AlertStore(Reader, Protocol):
    """A store that can also be written to; both writes return after their commit."""

    def execute(self, name: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run the writing statements of ``queries/<name>.sql`` in one transaction."""

    def insert(self, table: str, rows: pa.Table) -> None:
        """Insert rows, matched to columns by name."""


def load_memory(store: Reader) -> str | None:
    """Return the stored memory of the evaluator; None if there is none yet."""
    rows = store.query("alert_memory_load", {}).to_pylist()
    return str(rows[0]["document"]) if rows else None


def save_memory(store: AlertStore, document: str, at: datetime) -> None:
    """Replace the stored memory."""
    store.execute("alert_memory_save", {"saved_at": _naive(at), "document": document})


def append_history(store: AlertStore, entries: Sequence[Entry]) -> None:
    """Add rows to ``alert_events``."""
    rows = [_row(entry) for entry in entries]
    store.insert("alert_events", pa.Table.from_pylist(rows, schema=_EVENTS))


def _row(entry: Entry) -> dict[str, object]:
    instance = entry.instance
    return {
        "time": _naive(entry.at),
        "alert": entry.alert,
        "severity": entry.severity,
        "labels": json.dumps(dict(sorted(instance.labels)), separators=(",", ":")),
        "state": str(entry.state),
        "active_at": _naive(instance.active_at),
        "fired_at": _naive(instance.fired_at),
        "resolved_at": _naive(entry.at) if entry.state is State.RESOLVED else None,
        "value": instance.value,
        "peak": instance.worst,
    }


def _naive(time: datetime | None) -> datetime | None:
    return time.astimezone(UTC).replace(tzinfo=None) if time else None
