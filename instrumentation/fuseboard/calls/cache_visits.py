"""The way of one call through the cache: every decision, and no waiting, for both worlds."""

from __future__ import annotations

from contextvars import Token
from types import TracebackType
from typing import Any, Final, Self

from fuseboard import guard
from fuseboard.calls.bare import UNFINISHED
from fuseboard.calls.falling_back import serve_stale
from fuseboard.calls.guarded import GuardedRun
from fuseboard.conventions import Layer, Outcome, ResultSource
from fuseboard.policy.cache import Stale, ToolCache
from fuseboard.policy.cache_flights import LED, Ending, Flight
from fuseboard.policy.cache_memory import Entry, confidence_at, copy_of

Answer = tuple[Any] | None
"""An answer in a tuple of its own, since None is an answer too; or None for none."""

_FAILED: Final = (Outcome.ERROR, Outcome.REJECTED, Outcome.DEGRADED)
_LEFT: Final = (Outcome.CANCELLED, Outcome.ABANDONED)


class Visit:
    """The way of one call through the cache: every decision, and no waiting.

    As a context manager it holds the flight that the call leads, if it leads one, and ends it.

    Attributes:
        cache: The tool's cache.
        key: The call's key.
        may_fetch: Whether to ask Redis: not after an equal call, which asked a moment ago.
    """

    __slots__ = ("_is_alone", "_led", "_run", "_token", "cache", "key", "may_fetch")

    def __init__(self, run: GuardedRun, cache: ToolCache, key: str) -> None:
        """Begin.

        Args:
            run: The call.
            cache: The tool's cache.
            key: The call's key.
        """
        self._run = run
        self.cache = cache
        self.key = key
        self._is_alone = not cache.config.single_flight
        self._led: Flight | None = None
        self._token: Token[tuple[object, ...]] | None = None
        self.may_fetch = cache.config.store is not None

    def look(self) -> Answer:
        """Return what memory has."""
        return self.take(self.cache.find(self.key), "hit_memory")

    @property
    def patience(self) -> float | None:
        """For how long the call may wait for an equal one, seconds; None for no limit."""
        self._run.renew_time_limit()
        return self._run.time_limit

    def board(self) -> Flight | None:
        """Return the flight to wait for, or None for a call that goes on itself."""
        if self._is_alone:
            return None
        flight, leads = self.cache.flights.join(self.key)
        if leads:
            self._led = flight
            return None
        if flight.token in LED.get():
            self._is_alone = True  # a tool that calls itself, which would wait for ever
            return None
        return flight

    def land(self, flight: Flight, is_over: bool) -> Answer:
        """Take what a flight brought; None where this call goes on itself or boards another.

        Args:
            flight: The flight.
            is_over: Whether it has ended, and not this call's patience.
        """
        if is_over and flight.ending is Ending.HANDED_OVER:
            return None
        self._is_alone = True
        if not is_over:
            return None
        self.may_fetch = False
        if flight.entry is not None:
            return self._serve(flight.entry, "hit_memory")
        self._run.failed_elsewhere(flight.fault)
        answer = serve_stale(self._run)
        if answer is None:
            self._run.failed_elsewhere(None)
        return answer

    def look_again(self) -> Answer:
        """Return what memory has by now: a call may have ended between look and board."""
        return self.look() if self._led is not None else None

    def take(self, entry: Entry | None, action: str) -> Answer:
        """Serve an entry if it is fresh; remember a stale one for the case of a fault."""
        if entry is None:
            return None
        if self.cache.is_fresh(entry):
            return self._serve(entry, action)
        known = self._run.stale
        is_younger = known is None or known.entry.born < entry.born
        if is_younger and self.cache.may_stand_in(entry):
            self._run.stale = Stale(self.cache, entry)
        return None

    def fetched(self, entry: Entry | None) -> Answer:
        """Return what Redis had; without an answer the call is a miss."""
        answer = self.take(entry, "hit_redis")
        if answer is None:
            self._run.call.note("cache", "miss")
        return answer

    def keep(self, value: Any) -> Entry | None:
        """Keep a live and valid answer and share it; return its entry."""
        call = self._run.call
        # Other arguments than those of the key got an answer to another question.
        if call.outcome is not Outcome.OK or self._run.was_corrected or type(value) in UNFINISHED:
            return None
        entry = self.cache.keep(self.key, value, call.result_age_seconds or 0.0)
        if entry is not None:
            self._end(Ending.SHARED, entry)
        return entry

    def cut(self, error: BaseException) -> None:
        """End a call that was cancelled while it waited."""
        self._run.interrupted(error, Layer.CACHE)

    def __enter__(self) -> Self:
        if self._led is not None:
            self._token = LED.set((*LED.get(), self._led.token))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            try:  # noqa: SIM105 - as wherever a context variable is reset
                LED.reset(self._token)
            except ValueError:
                pass  # a coroutine closed from another context
        if self._run.call.outcome in _LEFT:
            self._end(Ending.HANDED_OVER)
        else:
            self._end(Ending.FAILED)

    def _end(self, ending: Ending, entry: Entry | None = None) -> None:
        if self._led is not None:
            # One that retries got over is nobody's.
            has_failed = ending is Ending.FAILED and self._run.call.outcome in _FAILED
            fault = self._run.fault if has_failed else None
            self.cache.flights.end(self.key, self._led, ending, entry, fault)

    def _serve(self, entry: Entry, action: str) -> Answer:
        try:
            value = copy_of(entry.value)
        except Exception as fault:
            guard.swallow("copying an answer of the cache", fault)
            return None
        age, call = self.cache.age_of(entry), self._run.call
        call.result_source = ResultSource.CACHE
        call.result_age_seconds = age
        call.confidence = confidence_at(age)
        call.note("cache", action)
        self._run.hit(value)
        self._end(Ending.SHARED, entry)
        return (value,)
