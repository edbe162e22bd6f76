"""The way of one signal from the calling thread to the collector: queue, encode, wait, send."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from fuseboard.telemetry.encoding import Encoded
from fuseboard.telemetry.halving import halve
from fuseboard.telemetry.losses import Losses, Reason, Signal
from fuseboard.telemetry.sending import Answer, Delivered, Refused, Unavailable
from fuseboard.waiting import take_waiting

Record = TypeVar("Record")

BATCH_RECORDS: Final = 512
IDLE_SECONDS: Final = 0.5
"""How long a record waits at most for others to share its batch."""
RESEND_SECONDS: Final = 300.0
BACKOFF_FIRST: Final = 0.5
BACKOFF_MAX: Final = 8.0
_PAYLOAD_TOO_LARGE: Final = 413


@dataclass(slots=True)
class Batch:
    """An encoded request that waits for the collector."""

    body: bytes
    records: int
    made: float
    """When it was encoded, monotonic seconds."""
    settles: int = 1
    """1 for a whole batch or the last part of one, 0 for the parts before."""


def _one(_: object) -> int:
    return 1


class Lane(Generic[Record]):
    """A bounded queue of records and a bounded waiting room of encoded batches.

    ``offer`` is called by any thread and never waits; everything else belongs to the worker.

    Args:
        signal: What the lane carries.
        encode: Turns records into a request body.
        losses: Where lost records are counted.
        capacity: Most records that wait to be encoded.
        byte_budget: Most bytes of encoded batches that wait to be sent.
        uniform: ``uniform(low, high)``, the jitter.
        weigh: Tells how many lost records one of the queue counts for.
    """

    def __init__(
        self,
        signal: Signal,
        encode: Callable[[Sequence[Record]], Encoded],
        losses: Losses,
        *,
        capacity: int,
        byte_budget: int,
        uniform: Callable[[float, float], float],
        weigh: Callable[[Record], int] = _one,
    ) -> None:
        self.signal = signal
        self.batch_records = min(BATCH_RECORDS, capacity)
        self._encode = encode
        self._losses = losses
        self._capacity = capacity
        self._byte_budget = byte_budget
        self._uniform = uniform
        self._weigh = weigh
        self.reset()

    def reset(self) -> None:
        """Forget everything that waits, as a forked child must."""
        self._queue: deque[Record] = deque()
        self._waiting: deque[Batch] = deque()
        self._bytes = 0
        self._failures = 0
        self._not_before = 0.0
        self._collected = -IDLE_SECONDS
        self.batches_made = 0
        self.batches_settled = 0

    def offer(self, record: Record) -> bool:
        """Queue a record, or count it as lost; return whether a full batch now waits."""
        # Append and len are atomic; two threads may overshoot the bound by one record each.
        queued = len(self._queue)
        if queued >= self._capacity:
            self._losses.add(self.signal, Reason.QUEUE_FULL, self._weigh(record))
            return True
        self._queue.append(record)
        return queued + 1 == self.batch_records

    @property
    def queued(self) -> int:
        """Records that wait to be encoded."""
        return len(self._queue)

    @property
    def pending(self) -> int:
        """Records that the collector has not confirmed."""
        return len(self._queue) + sum(batch.records for batch in tuple(self._waiting))

    def ripe(self, now: float) -> float | None:
        """Return seconds until what is queued should be encoded; None if nothing is queued.

        A sparse batch costs the caller's interpreter as many switches as a full one, hence
        records wait for company.
        """
        if not self._queue:
            return None
        if len(self._queue) >= self.batch_records:
            return 0.0
        return max(0.0, self._collected + IDLE_SECONDS - now)

    def collect(self, now: float) -> bool:
        """Encode at most one batch of what is queued; return whether there was anything."""
        self._collected = now
        records = take_waiting(self._queue, self.batch_records)
        if not records:
            return False
        body, encoded, lost = self._encode(records)
        self._losses.add(self.signal, Reason.ENCODING, lost)
        if encoded:
            self._waiting.append(Batch(body, encoded, now))
            self.batches_made += 1
            self._bytes += len(body)
        self._shed(now)
        return True

    def _shed(self, now: float) -> None:
        """Give up the oldest batches where the waiting room is full or they are too old."""
        while self._waiting and now - self._waiting[0].made >= RESEND_SECONDS:
            self._losses.add(self.signal, Reason.EXPIRED, self._settle().records)
        while self._bytes > self._byte_budget:
            self._losses.add(self.signal, Reason.BUFFER_FULL, self._settle().records)

    def _settle(self) -> Batch:
        batch = self._waiting.popleft()
        self._bytes -= len(batch.body)
        self.batches_settled += batch.settles
        return batch

    def due(self, now: float) -> float | None:
        """Return seconds until the next batch may be sent; None if none waits."""
        return max(0.0, self._not_before - now) if self._waiting else None

    def send(
        self, send: Callable[[Signal, bytes], Answer], clock: Callable[[], float]
    ) -> Answer | None:
        """Send the oldest batch and act on the answer; None if none waits."""
        self._shed(clock())
        if not self._waiting:
            return None
        answer = send(self.signal, self._waiting[0].body)
        if isinstance(answer, Unavailable):
            self._hold(answer, clock())
        elif not self._split_too_large(answer):
            self._close(answer)
        return answer

    def _split_too_large(self, answer: Delivered | Refused) -> bool:
        """Put two halves in the place of a batch that was too large; one record has none."""
        if not isinstance(answer, Refused) or answer.status != _PAYLOAD_TOO_LARGE:
            return False
        batch = self._waiting[0]
        first = batch.records // 2
        if first == 0:
            return False
        try:
            bodies = halve(self.signal, batch.body, first)
        except Exception:
            return False
        self._waiting.popleft()
        second = Batch(bodies[1], batch.records - first, batch.made, batch.settles)
        self._waiting.extendleft((second, Batch(bodies[0], first, batch.made, settles=0)))
        self._bytes += sum(map(len, bodies)) - len(batch.body)
        self._failures = 0
        self._not_before = 0.0
        return True

    def _close(self, answer: Delivered | Refused) -> None:
        self._failures = 0
        self._not_before = 0.0
        records = self._settle().records
        if isinstance(answer, Delivered):
            self._losses.add(self.signal, Reason.REJECTED, answer.rejected, answer.detail)
            return
        is_large = answer.status == _PAYLOAD_TOO_LARGE
        reason = Reason.TOO_LARGE if is_large else Reason.REJECTED
        self._losses.add(self.signal, reason, records, answer.detail)

    def _hold(self, answer: Unavailable, now: float) -> None:
        ceiling = min(BACKOFF_MAX, BACKOFF_FIRST * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        wait = self._uniform(ceiling / 2, ceiling)
        # Retry-After is a lower bound; a nonsensical one must not outlive the batch.
        self._not_before = now + max(wait, min(answer.retry_after or 0.0, RESEND_SECONDS))

    def abandon(self) -> int:
        """Give up everything that waits; return how many records that were."""
        # Taken one by one, for several threads may come here at once, and others still offer.
        lost = 0
        with contextlib.suppress(IndexError):
            while True:
                lost += self._weigh(self._queue.popleft())
        with contextlib.suppress(IndexError):
            while True:
                lost += self._waiting.popleft().records
        self._losses.add(self.signal, Reason.SHUTDOWN, lost)
        return lost
