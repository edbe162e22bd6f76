"""The rows of the store's tables, typed, and their Arrow form.

Field names are column names. Anything that writes to the store, tests included, makes these
rows and hands them over in a :class:`Batch`; only identity, time and result need be given.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias, get_type_hints

import pyarrow as pa

Instant: TypeAlias = int | datetime
"""Microseconds since the Unix epoch, or a datetime (UTC where it names no zone)."""

UNNAMED_SCOPE = "?"
"""Instrumentation of a foreign call whose sender names none, or claims our name."""

_random_trace_id = partial(secrets.token_hex, 16)
_random_span_id = partial(secrets.token_hex, 8)


def micros(instant: Instant) -> int:
    """Return an instant as whole microseconds since the Unix epoch."""
    if isinstance(instant, int):
        return instant
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@dataclass(slots=True)
class ToolCall:
    """One logical call; columns as in the export record ``calls`` plus ``attributes``.

    Give ``end`` or ``start``; the other follows from the duration. The store itself adds the
    attempt row of a call with one successful attempt.
    """

    TABLE: ClassVar[str] = "tool_calls"

    tool: str
    end: Instant | None = None
    duration_seconds: float = 0.1
    outcome: str = "ok"
    start: Instant | None = None
    trace_id: str = field(default_factory=_random_trace_id)
    span_id: str = field(default_factory=_random_span_id)
    received_at: Instant | None = None
    attempt_seconds: float | None = None
    server: str | None = None
    region: str | None = None
    environment: str | None = None
    service: str | None = None
    instance: str | None = None
    agent: str | None = None
    session: str | None = None
    framework: str | None = None
    error_class: str | None = None
    error_type: str | None = None
    cause_type: str | None = None
    classifier_id: str | None = None
    retry_strategy: str | None = None
    http_status: int | None = None
    error_message: str | None = None
    retryable: bool | None = None
    origin: str | None = None
    attempts: int = 1
    backoff_seconds: float | None = None
    layer: str | None = None
    breaker_state: str | None = None
    result_source: str | None = None
    result_age_seconds: float | None = None
    confidence: str | None = None
    fallback_tool: str | None = None
    partial_failures: int | None = None
    cost: float | None = None
    args_hash: str | None = None
    upstream: str | None = None
    call_id: str | None = None
    weight: float = 1.0
    parent_span_id: str | None = None
    instrumentation: str | None = None
    attributes: str | None = None
    """JSON text of the span attributes that have no column of their own."""

    def __post_init__(self) -> None:
        length = round(self.duration_seconds * 1e6)
        if self.start is None:
            if self.end is None:
                raise ValueError(f"call of {self.tool!r} has neither start nor end")
            self.start = micros(self.end) - length
        if self.end is None:
            self.end = micros(self.start) + length
        if self.received_at is None:
            self.received_at = self.end

    def key(self) -> bytes:
        """Return what makes a second copy of this row a repeat."""
        return bytes.fromhex(self.trace_id + self.span_id)


@dataclass(slots=True)
class Attempt:
    """One try within a call that failed or needed several; ``span_id`` is the attempt's own."""

    TABLE: ClassVar[str] = "attempts"

    trace_id: str
    call_span_id: str
    number: int
    start: Instant
    duration_seconds: float
    tool: str
    result: str
    span_id: str = field(default_factory=_random_span_id)
    delay_seconds: float = 0.0
    region: str | None = None
    service: str | None = None
    environment: str | None = None
    agent: str | None = None
    error_class: str | None = None
    error_type: str | None = None
    http_status: int | None = None
    cost: float | None = None
    weight: float = 1.0
    received_at: Instant | None = None

    def __post_init__(self) -> None:
        if self.received_at is None:
            self.received_at = micros(self.start) + round(self.duration_seconds * 1e6)

    def key(self) -> bytes:
        """Return what makes a second copy of this row a repeat."""
        return bytes.fromhex(self.trace_id + self.span_id)


@dataclass(slots=True)
class BreakerTransition:
    """A breaker changed its state."""

    TABLE: ClassVar[str] = "breaker_transitions"

    time: Instant
    breaker: str
    tool: str
    from_state: str
    to_state: str
    region: str | None = None
    upstream: str | None = None
    service: str | None = None
    instance: str | None = None
    environment: str | None = None
    reason: str | None = None
    failure_ratio: float | None = None
    calls: int | None = None
    failures: int | None = None
    error_class: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    received_at: Instant | None = None

    def __post_init__(self) -> None:
        self.received_at = self.time if self.received_at is None else self.received_at

    def key(self) -> bytes:
        """Return what makes a second copy of this row a repeat: logs carry no id."""
        return natural_key(
            self.TABLE, self.service, self.instance, self.breaker, micros(self.time),
            self.from_state, self.to_state,
        )  # fmt: skip


@dataclass(slots=True)
class Heartbeat:
    """A process said that it lives; the lists are JSON text."""

    TABLE: ClassVar[str] = "heartbeats"

    time: Instant
    instance: str
    service: str | None = None
    environment: str | None = None
    region: str | None = None
    version: str | None = None
    breakers: str | None = None
    calls_in_flight: str | None = None
    dropped: str | None = None
    overflow: str | None = None
    received_at: Instant | None = None

    def __post_init__(self) -> None:
        self.received_at = self.time if self.received_at is None else self.received_at

    def key(self) -> bytes:
        """Return what makes a second copy of this row a repeat."""
        return natural_key(self.TABLE, self.service, self.instance, micros(self.time))


@dataclass(slots=True)
class Span:
    """A span that is no tool call, kept lean for context."""

    TABLE: ClassVar[str] = "spans"

    trace_id: str
    span_id: str
    name: str
    start: Instant
    duration_seconds: float
    parent_span_id: str | None = None
    kind: str | None = None
    service: str | None = None
    status: str | None = None
    instrumentation: str | None = None
    session: str | None = None
    agent: str | None = None
    operation: str | None = None
    http_status: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    attributes: str | None = None
    received_at: Instant | None = None

    def __post_init__(self) -> None:
        if self.received_at is None:
            self.received_at = micros(self.start) + round(self.duration_seconds * 1e6)

    def key(self) -> bytes:
        """Return what makes a second copy of this row a repeat."""
        return bytes.fromhex(self.trace_id + self.span_id)


@dataclass(slots=True)
class Sighting:
    """What one foreign span says of a call of a tool; assembly makes calls of them.

    Attributes:
        dialect: Name of the module of ``normalise/dialects`` that read it.
        args_hash: The shim's hash; or ``raw:…``, comparable with its like only, if the arguments
            can't be bound by name.
        attempt_number: Number of the attempt, from 1, where the span itself says so.
        evidence: How good ``error_type`` is: 0 there is none, 1 a generic word, 2 read out of a
            text, 3 an attribute.
    """

    TABLE: ClassVar[str] = "sightings"

    trace_id: str
    span_id: str
    name: str
    start: Instant
    duration_seconds: float
    dialect: str
    tool: str
    parent_span_id: str | None = None
    kind: str | None = None
    instrumentation: str | None = None
    server: str | None = None
    call_id: str | None = None
    args_hash: str | None = None
    attempt_number: int | None = None
    failed: bool = False
    error_type: str | None = None
    error_class: str | None = None
    classifier_id: str | None = None
    retryable: bool | None = None
    origin: str | None = None
    http_status: int | None = None
    error_message: str | None = None
    evidence: int = 0
    service: str | None = None
    instance: str | None = None
    environment: str | None = None
    region: str | None = None
    session: str | None = None
    agent: str | None = None
    framework: str | None = None
    weight: float = 1.0
    attributes: str | None = None
    received_at: Instant | None = None

    def __post_init__(self) -> None:
        if self.received_at is None:
            self.received_at = micros(self.start) + round(self.duration_seconds * 1e6)

    def key(self) -> bytes:
        """Return what makes a second copy of this row a repeat."""
        return bytes.fromhex(self.trace_id + self.span_id)


Row: TypeAlias = ToolCall | Attempt | BreakerTransition | Heartbeat | Span | Sighting
ROW_TYPES: tuple[type[Row], ...] = (
    ToolCall, Attempt, BreakerTransition, Heartbeat, Span, Sighting,
)  # fmt: skip


def natural_key(*parts: object) -> bytes:
    """Return the identity of a row without ids: its parts, joined unambiguously."""
    return "\x1f".join("" if part is None else str(part) for part in parts).encode()


@dataclass(slots=True)
class Batch:
    """What one request brings: rows of any tables, committed together or not at all.

    Attributes:
        call_cells: More calls, each as the cells of its row in the order of the fields of
            :class:`ToolCall`. Our own shim's come by the thousand; this spares them an object.
    """

    calls: list[ToolCall] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    transitions: list[BreakerTransition] = field(default_factory=list)
    heartbeats: list[Heartbeat] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    call_cells: list[list[Any]] = field(default_factory=list)

    def all_calls(self) -> list[ToolCall]:
        """Return all calls as objects."""
        return [*self.calls, *(ToolCall(*cells) for cells in self.call_cells)]

    def lists(self) -> tuple[Sequence[Row], ...]:
        """Return the lists of objects that have any, each of one table."""
        every: tuple[Sequence[Row], ...] = (
            self.calls, self.attempts, self.transitions, self.heartbeats, self.spans,
            self.sightings,
        )  # fmt: skip
        return tuple(rows for rows in every if rows)

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.lists()) + len(self.call_cells)


_ARROW_TYPES: dict[object, pa.DataType] = {
    str: pa.string(), str | None: pa.string(),
    float: pa.float64(), float | None: pa.float64(),
    int: pa.int64(), int | None: pa.int64(),
    bool: pa.bool_(), bool | None: pa.bool_(),
    Instant: pa.timestamp("us"), Instant | None: pa.timestamp("us"),
}  # fmt: skip


def _arrow_schema(row_type: type[Row]) -> pa.Schema:
    hints: dict[str, Any] = get_type_hints(row_type)
    return pa.schema([(item.name, _ARROW_TYPES[hints[item.name]]) for item in fields(row_type)])


ARROW_SCHEMAS: dict[str, pa.Schema] = {item.TABLE: _arrow_schema(item) for item in ROW_TYPES}
"""The Arrow schema of each table's rows; the fields' types decide."""


_cells_of = {item.TABLE: attrgetter(*ARROW_SCHEMAS[item.TABLE].names) for item in ROW_TYPES}


def to_arrow(rows: Sequence[Row]) -> pa.Table:
    """Return rows of one type as an Arrow table.

    Args:
        rows: At least one row; all of one type.
    """
    table = rows[0].TABLE
    return cells_to_arrow(table, map(_cells_of[table], rows))


def cells_to_arrow(table: str, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows that are cells already as an Arrow table.

    Args:
        table: Whose rows they are.
        rows: At least one; cells in the order of the table's schema in ``ARROW_SCHEMAS``.
    """
    schema = ARROW_SCHEMAS[table]
    # Row by row, and then turned: a third of the time of a list for each of forty columns.
    columns = zip(*rows, strict=True)
    arrays = [pa.array(cells, type=item.type) for cells, item in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
