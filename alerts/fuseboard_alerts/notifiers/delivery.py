"""Deliver messages to one receiver in order, apart from the evaluation that made them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fuseboard_alerts.memory import Message
from fuseboard_alerts.notifiers.receiver import Receiver, RefusedError, TemporaryDeliveryError

logger = logging.getLogger("fuseboard.alerts")


@dataclass(frozen=True, slots=True)
class ReceiverStatus:
    """How a receiver is doing.

    Attributes:
        waiting: Messages not delivered yet.
        delivered: Messages delivered since the start.
        failures: Failed tries since the start.
        dropped: Messages given up since the start: refused, or pushed out of a full queue.
        last_error: What went wrong at the last failed try; no secret.
    """

    name: str
    waiting: int
    delivered: int
    failures: int
    dropped: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Patience:
    """When to try again, in seconds: doubling from ``first`` to ``longest``."""

    first: float = 1.0
    longest: float = 60.0


class Courier:
    """One receiver, its bounded queue and the thread that empties it.

    The head of the queue is tried until it is delivered or refused, so a firing alert always
    arrives before its resolution. When the queue is full its oldest message gives way.
    """

    def __init__(
        self,
        receiver: Receiver,
        *,
        on_settled: Callable[[], None],
        capacity: int = 1000,
        patience: Patience | None = None,
    ) -> None:
        """Make a courier; nothing is sent before ``start``.

        Args:
            receiver: Where to deliver.
            on_settled: Called after a message left the queue, to save what is left.
            capacity: Messages that may wait.
            patience: Pauses between tries.
        """
        self.name = receiver.name
        self._receiver = receiver
        self._on_settled = on_settled
        self._capacity = capacity
        self._patience = patience or Patience()
        self._changed = threading.Condition()
        self._queue: deque[Message] = deque()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._delivered = self._failures = self._dropped = 0
        self._last_error: str | None = None

    def offer(self, messages: Iterable[Message]) -> None:
        """Queue messages; never waits."""
        with self._changed:
            for message in messages:
                if len(self._queue) >= self._capacity:
                    self._queue.popleft()
                    self._dropped += 1
                self._queue.append(message)
            self._changed.notify_all()

    def waiting(self) -> list[Message]:
        """Return what is not delivered yet, oldest first."""
        with self._changed:
            return list(self._queue)

    def status(self) -> ReceiverStatus:
        """Return how the receiver is doing."""
        with self._changed:
            return ReceiverStatus(
                self.name,
                len(self._queue),
                self._delivered,
                self._failures,
                self._dropped,
                self._last_error,
            )

    def start(self) -> None:
        """Begin to deliver in a thread of its own."""
        if self._thread is None:
            self._is_stopping = False
            self._thread = threading.Thread(
                target=self._run, name=f"fuseboard-{self.name}", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Stop delivering; what waits stays in the queue."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
            self._thread = None

    def _run(self) -> None:
        pause = self._patience.first
        while (message := self._next()) is not None:
            if self._try(message):
                pause = self._patience.first
            else:
                self._rest(pause)
                pause = min(2 * pause, self._patience.longest)

    def _next(self) -> Message | None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or bool(self._queue))
            return None if self._is_stopping else self._queue[0]

    def _try(self, message: Message) -> bool:
        """Try once; return whether the message is settled."""
        try:
            self._receiver.send(message)
        except RefusedError as error:
            logger.error("alert notification given up: %s", error)
            self._settle(message, error)
            return True
        except TemporaryDeliveryError as error:
            self._fail(str(error))
            return False
        except Exception as error:
            self._fail(f"{self.name}: {type(error).__name__}")
            return False
        self._settle(message, None)
        return True

    def _settle(self, message: Message, error: RefusedError | None) -> None:
        with self._changed:
            # A full queue may have pushed it out meanwhile.
            if self._queue and self._queue[0] is message:
                self._queue.popleft()
            if error is None:
                self._delivered += 1
            else:
                self._failures += 1
                self._dropped += 1
                self._last_error = str(error)
        self._on_settled()

    def _fail(self, reason: str) -> None:
        with self._changed:
            self._failures += 1
            self._last_error = reason
        logger.warning("alert notification not delivered, will be tried again: %s", reason)

    def _rest(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_stopping, timeout=max(0.0, deadline - time.monotonic())
            )
