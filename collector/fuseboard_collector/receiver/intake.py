"""What every protocol does with a body: unpack, decode, normalise, store, wait for the commit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum

from fuseboard.clock import Clock
from fuseboard_collector.errors import StoreError
from fuseboard_collector.normalise.normaliser import normalise_logs, normalise_traces
from fuseboard_collector.receiver import otlp_json, otlp_protobuf
from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.errors import OverloadedError, StoppingError
from fuseboard_collector.receiver.unpacking import Packing, unpack
from fuseboard_collector.store.rows import Batch
from fuseboard_collector.store.surface import AnyStore

MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024
"""Bodies that may be in memory at once, packed and unpacked; more are asked to come back."""
MAX_UNPACKED = {Encoding.PROTOBUF: 32 * 1024 * 1024, Encoding.JSON: 16 * 1024 * 1024}
"""Bytes of a body as it is decoded. Objects made of JSON take twenty times its bytes."""
LARGE_BODY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Taken:
    """A decoded body.

    Attributes:
        done: The commit to wait for, if there is anything to commit.
        accepted: Counters to raise when it is stored.
        rejected: Records that can't be stored, by reason.
        foreign: Spans of others that tell of a tool's call, by dialect.
    """

    done: Future[None] | None
    accepted: dict[str, int]
    rejected: Counter[str]
    foreign: Counter[str] = field(default_factory=Counter)


class Signal(Enum):
    """The three signals, with the name of their count of rejected records."""

    TRACES = "rejected_spans"
    LOGS = "rejected_log_records"
    METRICS = "rejected_data_points"

    @property
    def word(self) -> str:
        """Return its name in paths and counters, for example ``traces``."""
        return self.name.lower()


class Room:
    """The memory that one request holds; given back when the request ends."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.held = 0

    def take(self, size: int) -> None:
        """Hold ``size`` more bytes.

        Raises:
            OverloadedError: If all requests together hold too many.
        """
        self._intake.hold(size)
        self.held += size


class Intake:
    """Takes bodies of any protocol on worker threads and hands their rows to the store.

    Belongs to one event loop.

    Args:
        store: Where the rows go.
        clock: Source of the time of arrival.
        keep_arguments: Whether the arguments of foreign calls are stored, redacted and bounded.
    """

    def __init__(self, store: AnyStore, clock: Clock, *, keep_arguments: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._keep_arguments = keep_arguments
        self._held = 0
        self._large = asyncio.Semaphore(1)
        self._stopping = False
        self.stats = store.stats

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Yield the account of one request's memory.

        Raises:
            StoppingError: If the server stops.
        """
        if self._stopping:
            raise StoppingError("the server is stopping")
        room = Room(self)
        try:
            yield room
        finally:
            self._held -= room.held

    def hold(self, size: int) -> None:
        """Count bytes of a request; see :meth:`Room.take`."""
        if self._held + size > MAX_BYTES_IN_FLIGHT:
            raise OverloadedError("too many requests are being read and decoded")
        self._held += size

    @property
    def is_stopping(self) -> bool:
        """Tell whether nothing new is taken any more."""
        return self._stopping

    def is_ready(self) -> bool:
        """Tell whether a body that came now could be stored."""
        return not self._stopping and self._store.unavailable_because() is None

    def stop(self) -> None:
        """Take nothing new from now on; what was taken is finished."""
        self._stopping = True

    async def take(
        self, signal: Signal, encoding: Encoding, packing: Packing, body: bytes, room: Room
    ) -> Counter[str]:
        """Store a body and wait until it is durable.

        Args:
            signal: What it carries.
            encoding: How.
            packing: How it is compressed.
            body: Its bytes, held by ``room`` already.
            room: The request's memory.

        Returns:
            How many records will never be accepted, by reason.

        Raises:
            RefusedError: If nothing of it is stored.
        """
        self.stats.add("received_bytes", len(body))
        limit = MAX_UNPACKED[encoding]
        try:
            if packing is not Packing.NONE:
                body = await asyncio.to_thread(unpack, body, limit, packing)
                room.take(len(body))
            async with self._turn(len(body)):
                taken = await asyncio.to_thread(self.decode, signal, encoding, body)
            if taken.done is not None:
                await self._commit(taken.done)
        except StoreError as error:
            # Busy, not open or broken: the data is good and the client should keep it.
            raise OverloadedError(str(error)) from error
        for name, amount in taken.accepted.items():
            self.stats.add(name, amount)
        for dialect, amount in taken.foreign.items():
            self.stats.add("foreign_spans", amount, dialect)
        for reason, amount in taken.rejected.items():
            self.stats.add(f"rejected_{signal.word}", amount, reason)
        return taken.rejected

    async def _commit(self, done: Future[None]) -> None:
        began = self._clock.monotonic()
        await asyncio.wrap_future(done)
        self.stats.observe("commit", self._clock.monotonic() - began)

    def count_answer(self, protocol: str, signal: Signal, status: int | str) -> None:
        """Count a request that was answered.

        Args:
            protocol: ``http`` or ``grpc``.
            signal: Of which signal.
            status: How: the HTTP status, or the name of the gRPC code.
        """
        self.stats.add("answers", label=f"{protocol} {signal.word} {status}")

    def _turn(self, size: int) -> AbstractAsyncContextManager[object]:
        """Let large bodies be decoded one at a time: their objects take twenty times the bytes."""
        return self._large if size > LARGE_BODY else nullcontext()

    def decode(self, signal: Signal, encoding: Encoding, body: bytes) -> Taken:
        """Decode a body and hand its rows to the store, on this thread.

        Raises:
            RefusedError: If it can't be decoded.
            StoreError: If the store can't take it.
        """
        codec = otlp_json if encoding is Encoding.JSON else otlp_protobuf
        if signal is Signal.METRICS:
            # Only counted: the store derives its own.
            return Taken(None, {"ignored_metrics": codec.count_metrics(body)}, Counter())
        if signal is Signal.TRACES:
            traces = codec.decode_traces(body)
            batch = normalise_traces(traces, self._now(), keep_arguments=self._keep_arguments)
            accepted = {"accepted_spans": len(batch)}
            foreign = Counter(row.dialect for row in batch.sightings)
            return Taken(self._append(batch), accepted, traces.rejected, foreign)
        batch, ignored, rejected = normalise_logs(codec.decode_logs(body), self._now())
        accepted = {"accepted_events": len(batch), "ignored_logs": ignored}
        return Taken(self._append(batch), accepted, rejected)

    def _append(self, batch: Batch) -> Future[None] | None:
        return self._store.append(batch) if len(batch) else None

    def _now(self) -> int:
        return self._clock.time_ns() // 1000


def reasons(rejected: Counter[str]) -> str:
    """Return why records were rejected, for a person to read."""
    return ", ".join(f"{amount} × {reason}" for reason, amount in rejected.most_common(5))
