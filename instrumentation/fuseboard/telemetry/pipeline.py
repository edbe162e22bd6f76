"""Export without ever making a caller wait: two lanes, one daemon thread, one sender."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.context import (
    _SUPPRESS_HTTP_INSTRUMENTATION_KEY,
    _SUPPRESS_INSTRUMENTATION_KEY,
    attach,
    get_current,
    set_value,
)

from fuseboard.telemetry.encoding import Encoder, FinishedSpan
from fuseboard.telemetry.lane import IDLE_SECONDS, Lane
from fuseboard.telemetry.logs import FinishedLog
from fuseboard.telemetry.losses import Losses, Signal
from fuseboard.telemetry.plain_calls import spans_in
from fuseboard.telemetry.sending import Answer, Delivered, Sender, Unavailable

logger = logging.getLogger("fuseboard")

SPAN_CAPACITY: Final = 8192
LOG_CAPACITY: Final = 2048
SPAN_BYTES: Final = 32 * 1024 * 1024
LOG_BYTES: Final = 8 * 1024 * 1024
REQUEST_TIMEOUT: Final = 10.0
HURRIED_SECONDS: Final = 0.2
"""Pause between tries while somebody waits for a flush."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the pipeline.

    Attributes:
        spans: Most spans that wait to be encoded.
        logs: Most log events that wait to be encoded.
        span_bytes: Most bytes of encoded spans that wait for the collector.
        log_bytes: Most bytes of encoded log events that wait for the collector.
        request_timeout: Seconds that one network operation may take.
    """

    spans: int = SPAN_CAPACITY
    logs: int = LOG_CAPACITY
    span_bytes: int = SPAN_BYTES
    log_bytes: int = LOG_BYTES
    request_timeout: float = REQUEST_TIMEOUT


@dataclass(slots=True)
class _Flush:
    deadline: float
    lost_before: int
    barriers: list[int] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


class Pipeline:
    """Owns the worker thread that encodes, keeps and sends.

    Attributes:
        where: The collector's address, for log lines.
        gave_up: Whether its end waited no longer because nothing listens there.

    Args:
        sender: Sends one batch.
        encoder: Turns records into bytes.
        losses: Where lost records are counted.
        where: The collector's address, for log lines.
        monotonic: Source of time, seconds.
        uniform: ``uniform(low, high)``, the jitter.
        limits: Bounds.
    """

    def __init__(
        self,
        sender: Sender,
        encoder: Encoder,
        losses: Losses,
        *,
        where: str,
        monotonic: Callable[[], float],
        uniform: Callable[[float, float], float],
        limits: Limits | None = None,
    ) -> None:
        limits = limits or Limits()
        self.spans: Lane[FinishedSpan] = Lane(
            Signal.SPANS,
            encoder.spans,
            losses,
            capacity=limits.spans,
            byte_budget=limits.span_bytes,
            uniform=uniform,
            weigh=spans_in,
        )
        self.logs: Lane[FinishedLog] = Lane(
            Signal.LOGS,
            encoder.logs,
            losses,
            capacity=limits.logs,
            byte_budget=limits.log_bytes,
            uniform=uniform,
        )
        self.where = where
        self._lanes: Sequence[Lane[FinishedSpan] | Lane[FinishedLog]] = (self.spans, self.logs)
        self._sender = sender
        self._losses = losses
        self._monotonic = monotonic
        self._timeout = limits.request_timeout
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None
        self._flushes: list[_Flush] = []
        self._closing: float | None = None
        self._is_closed = False
        self._is_away = False
        self._was_reached = False
        self.gave_up = False

    def after_fork(self) -> None:
        """Start anew in a forked child: the parent's thread and records stay the parent's."""
        for lane in self._lanes:
            lane.reset()
        self._reset()
        self._sender.close()

    def offer_span(self, span: FinishedSpan) -> None:
        """Queue a span; never waits, never raises."""
        if self.spans.offer(span) or self._thread is None or self._is_closed:
            self._accept(is_full=True)

    def offer_log(self, record: FinishedLog) -> None:
        """Queue a log event; never waits, never raises."""
        self._accept(is_full=self.logs.offer(record))

    def _accept(self, *, is_full: bool) -> None:
        if is_full:
            self._wake.set()
        if self._is_closed:
            self._abandon()
        elif self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            # Made before it is looked whether there is one: making it may call the garbage
            # collector, which may end a stream, which comes here again in the same thread.
            thread = threading.Thread(target=self._run, name="fuseboard-export", daemon=True)
            if self._thread is None and not self._is_closed:
                self._thread = thread
                thread.start()

    # --- The worker ------------------------------------------------------------------------
    def _run(self) -> None:
        context = set_value(_SUPPRESS_INSTRUMENTATION_KEY, True, get_current())
        attach(set_value(_SUPPRESS_HTTP_INSTRUMENTATION_KEY, True, context))
        while not self._is_closed:
            self._wake.wait(HURRIED_SECONDS if self._is_hurried() else self._pause())
            self._wake.clear()
            try:
                self.turn()
            except Exception:
                logger.debug("a turn of the export failed", exc_info=True)
            if self._closing is not None and self._may_end():
                break
        self._finished.set()
        if self._is_closed:  # nobody waited for what was being encoded meanwhile
            self._abandon()

    def _is_hurried(self) -> bool:
        return bool(self._flushes) or self._closing is not None

    def _pause(self) -> float:
        now = self._monotonic()
        waits = [wait for lane in self._lanes for wait in (lane.due(now), lane.ripe(now))]
        return min([IDLE_SECONDS, *(wait for wait in waits if wait is not None)])

    def turn(self) -> None:
        """Encode what is queued and send what is due; the worker's one step."""
        goes_on = True
        while goes_on:
            self._place_barriers()
            goes_on = self._collect(everything=self._is_hurried()) | self._send_round()
            self._answer_flushes()
            if self._closing is not None and self._may_end():
                break

    def _place_barriers(self) -> None:
        for flush in tuple(self._flushes):
            if not flush.barriers:
                self._collect(everything=True)
                flush.barriers = [lane.batches_made for lane in self._lanes]

    def _collect(self, *, everything: bool) -> bool:
        now = self._monotonic()
        collected = False
        for lane in self._lanes:
            # Bounded, so that a caller faster than the encoder cannot starve the sender.
            for _ in range(1 + lane.queued // lane.batch_records):
                if everything or lane.ripe(now) == 0.0:
                    collected |= lane.collect(now)
        return collected

    def _send_round(self) -> bool:
        """Send one due batch per lane; return whether to go on at once."""
        go_on = False
        for lane in self._lanes:
            due = lane.due(self._monotonic())
            if due is None or (due > 0 and not self._is_hurried()):
                continue
            answer = lane.send(self._send, self._monotonic)
            if answer is not None:
                self._note(answer)
                go_on |= not isinstance(answer, Unavailable)
        return go_on

    def _send(self, signal: Signal, body: bytes) -> Answer:
        timeout = self._timeout
        if self._closing is not None:
            timeout = min(timeout, max(0.05, self._closing - self._monotonic()))
        try:
            return self._sender.send(signal, body, timeout)
        except Exception as fault:
            # A host or header that can't be sent at all, say: what can't be helped here must not
            # be tried again without a pause.
            logger.debug("sending telemetry failed", exc_info=True)
            return Unavailable(type(fault).__name__)

    def _note(self, answer: Answer) -> None:
        if not isinstance(answer, Unavailable):
            self._was_reached = True
            if self._is_away and isinstance(answer, Delivered):
                self._is_away = False
                logger.info("the collector at %s answers again", self.where)
        elif not self._is_away:
            self._is_away = True
            if self._closing is None:
                logger.warning(
                    "the collector at %s does not take telemetry (%s); it is kept and sent "
                    "again for 5 minutes. Is `fuseboard serve` running there?",
                    self.where,
                    answer.detail,
                )
        if isinstance(answer, Unavailable) and answer.is_refused and not self._was_reached:
            self._give_up()

    def _give_up(self) -> None:
        """End the wait of a process that never saw its collector: nothing listens there."""
        if self._closing is not None:
            self._closing = self._monotonic()
            self.gave_up = True

    def _may_end(self) -> bool:
        is_empty = not any(lane.pending for lane in self._lanes)
        return is_empty or self._monotonic() >= (self._closing or 0.0)

    # --- Waiting for it --------------------------------------------------------------------
    def _answer_flushes(self) -> None:
        now = self._monotonic()
        for flush in tuple(self._flushes):
            settled = [lane.batches_settled for lane in self._lanes]
            done = bool(flush.barriers) and all(
                reached >= barrier for reached, barrier in zip(settled, flush.barriers, strict=True)
            )
            if done or now >= flush.deadline:
                self._flushes.remove(flush)
                if done:
                    flush.done.set()

    def flush(self, timeout: float) -> bool:
        """Send what is recorded so far.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether the collector confirmed all of it.
        """
        if self._is_closed or self._thread is None:
            return not any(lane.pending for lane in self._lanes)
        flush = _Flush(self._monotonic() + timeout, self._losses.accepted())
        self._flushes.append(flush)
        self._wake.set()
        return flush.done.wait(timeout) and self._losses.accepted() == flush.lost_before

    def shutdown(self, timeout: float) -> int:
        """Send what is left and stop.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            How many records the collector did not confirm; they are counted as lost.
        """
        if self._is_closed:
            return 0
        if self._thread is not None:
            self._closing = self._monotonic() + timeout
            self._wake.set()
            self._finished.wait(timeout)
        self._is_closed = True
        return self._abandon()

    def _abandon(self) -> int:
        return sum(lane.abandon() for lane in self._lanes)
