"""Which traces wait for their assembly, and which are known. Kept in memory, mirrored on disk.

Foreign spans are acknowledged when they are on disk. The same transaction marks their traces in
table ``staged_traces``; the transaction that stores what a trace comes to unmarks it. So after a
crash the marks say exactly what is left to do, and here they only get their due times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from fuseboard_collector.errors import StoreBusyError

GRACE_SECONDS = 2.0
"""A trace is assembled when so long no span of it came …"""
LONGEST_WAIT_SECONDS = 15.0
"""… or so long after the first."""
HORIZON_SECONDS = 6 * 3600.0
"""How long foreign spans are kept for relatives that come late."""
MAX_STAGED = 200_000
"""Foreign spans of tools that may wait for assembly; more are refused."""
MAX_KNOWN = 200_000
"""Traces in memory, about 400 bytes each; what is forgotten here is found on disk."""
MAX_TRACE = 5_000
"""Foreign spans of tools of one trace that are assembled together; more don't wait for grace."""
MAX_FAILURES = 3
"""Attempts at a trace by itself before it is set aside …"""
ASIDE_SECONDS = 300.0
"""… for so long: what is wrong may be the disk and not the trace."""

_ID_BYTES = 16
_EARLIER = 60_000_000
# Microseconds by which a span that is committed later may have arrived earlier.


@dataclass(slots=True)
class Known:
    """A trace whose foreign spans are on disk.

    Attributes:
        since: When the first that counts arrived, or earlier; microseconds since the epoch.
        last: When the newest arrived.
        sightings: How many there are.
        is_new: Whether nothing of it was assembled yet, for certain.
    """

    since: int
    last: int
    sightings: int = 0
    is_new: bool = False


@dataclass(slots=True)
class Waiting:
    """A trace that waits for its assembly; monotonic seconds."""

    first: float
    last: float
    sightings: int = 0


@dataclass(frozen=True, slots=True)
class News:
    """What a transaction brings of traces with foreign spans of tools.

    Attributes:
        traces: How many such spans it brings of each.
        unmarked: Those that have no mark on disk yet.
        received: When the first of its foreign spans arrived; microseconds since the epoch.
    """

    traces: Mapping[bytes, int]
    unmarked: Sequence[bytes]
    received: int


@dataclass(frozen=True, slots=True)
class Due:
    """A trace to be assembled now; ``since`` and ``is_new`` as in :class:`Known`."""

    trace: bytes
    since: int
    is_new: bool = False


class Staging:
    """Decides when a trace is assembled. Used by the writer thread alone, but for reading counts.

    Every own call costs one look into a dictionary; nothing where no foreign span ever came.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        max_staged: int = MAX_STAGED,
        max_known: int = MAX_KNOWN,
        max_trace: int = MAX_TRACE,
    ) -> None:
        """Start empty.

        Args:
            monotonic: Returns seconds that never run backwards.
            max_staged: Foreign spans of tools that may wait.
            max_known: Traces kept in memory.
            max_trace: Foreign spans of tools of one trace that are assembled together.
        """
        self._monotonic = monotonic
        self._max_staged = max_staged
        self._max_known = max_known
        self._max_trace = max_trace
        self._known: dict[bytes, Known] = {}
        self._waiting: dict[bytes, Waiting] = {}  # the longest without news first
        self._firsts: dict[bytes, float] = {}  # the longest waiting first
        self._large: dict[bytes, None] = {}  # too large to wait for more
        self._alone: set[bytes] = set()
        self._failures: dict[bytes, int] = {}
        self._aside: dict[bytes, float] = {}  # until when
        self._forgot = False
        self.waiting_sightings = 0
        """Foreign spans of tools that wait."""

    @property
    def waiting_traces(self) -> int:
        """How many traces wait."""
        return len(self._waiting)

    @property
    def max_known(self) -> int:
        """How many traces are kept in memory."""
        return self._max_known

    def sightings_of(self, trace: bytes) -> int:
        """Return how many foreign spans of a trace came this way, as far as it is remembered."""
        found = self._known.get(trace)
        return 0 if found is None else found.sightings

    def oldest_seconds(self) -> float | None:
        """Return for how long the first trace has waited; None if none waits."""
        first = next(iter(list(self._firsts.values())[:1]), None)
        return None if first is None else self._monotonic() - first

    def check_room(self) -> None:
        """Refuse more foreign spans while too many wait.

        Raises:
            StoreBusyError: If assembly has fallen behind.
        """
        if self.waiting_sightings >= self._max_staged:
            raise StoreBusyError(
                f"{self.waiting_sightings} spans of other instrumentation wait to be assembled"
            )

    def reload(
        self,
        marks: Iterable[tuple[bytes, int]],
        known: Sequence[tuple[bytes, int, int, int]],
        *,
        has_all: bool = True,
    ) -> None:
        """Start over with what is on disk.

        Args:
            marks: Trace and ``since`` of what waits.
            known: Trace, ``since``, ``last`` and number of foreign spans, newest first.
            has_all: Whether these are all there are, or as many as are kept in memory.
        """
        self._known = {
            trace: Known(since, last, amount) for trace, since, last, amount in reversed(known)
        }
        self._forgot = not has_all or len(known) >= self._max_known
        self._waiting, self._firsts, self._large, self._alone = {}, {}, {}, set()
        self.waiting_sightings = 0
        now = self._monotonic()
        for trace, since in marks:
            if trace in self._aside:
                continue
            found = self._known.setdefault(trace, Known(since, since))
            if found.sightings > self._max_trace:
                found.since = since
            self._add(trace, min(found.sightings, self._max_trace), now)

    def news(self, keys: Mapping[str, Sequence[bytes]], received: int | None) -> News:
        """Return what the rows of a transaction are to traces with foreign spans.

        Args:
            keys: The keys of new rows by table; each begins with the trace id.
            received: When the first of its foreign spans of tools arrived, if it has any.
        """
        traces: dict[bytes, int] = {}
        for key in keys.get("sightings", ()):
            trace = key[:_ID_BYTES]
            traces[trace] = traces.get(trace, 0) + 1
        known = self._known
        if known:
            for table in ("tool_calls", "spans"):
                for key in keys.get(table, ()):
                    if (trace := key[:_ID_BYTES]) in known:
                        traces.setdefault(trace, 0)
        unmarked = [trace for trace in traces if trace not in self._waiting]
        return News(traces, unmarked, received or 0)

    def since(self, trace: bytes, news: News) -> int:
        """Return a time before which no span of a trace arrived that still is to be assembled."""
        found = self._known.get(trace)
        if found is not None:
            return found.since
        return 0 if self._forgot else max(0, news.received - _EARLIER)

    def note(self, news: News) -> None:
        """Take in what a transaction brought, after its commit."""
        if not news.traces:
            return
        now = self._monotonic()
        for trace, amount in news.traces.items():
            self._aside.pop(trace, None)
            found = self._known.pop(trace, None)
            if found is None:
                found = Known(self.since(trace, news), news.received, is_new=not self._forgot)
            found.sightings += amount
            found.since = min(found.since, news.received or found.since)
            found.last = max(found.last, news.received)
            self._known[trace] = found
            self._add(trace, amount, now)
        self._forget_most_idle()

    def _add(self, trace: bytes, sightings: int, now: float) -> None:
        waiting = self._waiting.pop(trace, None) or Waiting(now, now)
        waiting.last = now
        waiting.sightings += sightings
        self._waiting[trace] = waiting
        self._firsts.setdefault(trace, now)
        if waiting.sightings > self._max_trace:
            self._large[trace] = None
        self.waiting_sightings += sightings

    def _forget_most_idle(self) -> None:
        if len(self._known) <= self._max_known:
            return
        # A tenth at once, so that the next transactions need not look for more.
        surplus = len(self._known) - self._max_known * 9 // 10
        idle = islice((item for item in self._known if item not in self._waiting), surplus)
        for trace in list(idle):
            del self._known[trace]
            self._forgot = True

    def forget_before(self, received: int) -> None:
        """Forget traces whose foreign spans have been deleted.

        Args:
            received: Arrival before which they have; microseconds since the epoch.
        """
        for trace in list(takewhile(lambda item: self._known[item].last < received, self._known)):
            if trace not in self._waiting:
                del self._known[trace]

    def due(self, most: int, *, quiet_since: float | None = None) -> list[Due]:
        """Return traces to assemble now.

        Args:
            most: Foreign spans of tools in them, unless a single trace has more.
            quiet_since: Take all whose last span came until then, whatever the grace time.
        """
        now = self._monotonic()
        self._take_back(now)
        quiet = now - GRACE_SECONDS if quiet_since is None else quiet_since
        chosen: dict[bytes, None] = {}
        size = 0
        for trace in self._candidates(quiet, now - LONGEST_WAIT_SECONDS):
            if trace in chosen:
                continue
            found = self._known[trace]
            size += found.sightings + 1
            if chosen and (size > most or trace in self._alone):
                break
            chosen[trace] = None
            if size >= most or trace in self._alone:
                break
        known = ((trace, self._known[trace]) for trace in chosen)
        return [Due(trace, found.since, found.is_new) for trace, found in known]

    def _take_back(self, now: float) -> None:
        for trace in list(takewhile(lambda item: self._aside[item] <= now, self._aside)):
            del self._aside[trace]
            if trace in self._known:
                self._alone.add(trace)
                self._add(trace, 0, now)

    def _candidates(self, quiet: float, began: float) -> Iterable[bytes]:
        yield from self._large
        for trace, waiting in self._waiting.items():
            if waiting.last > quiet:
                break
            yield trace
        for trace, first in self._firsts.items():
            if first > began:
                break
            if self._waiting[trace].last > quiet:
                yield trace

    def assembled(self, arrivals: Mapping[bytes, tuple[int, int]]) -> None:
        """Take note that traces are stored and unmarked.

        A trace too large to be assembled again as a whole starts afresh: what was assembled of it
        stands, and what comes is assembled beside it.

        Args:
            arrivals: When the first and the last of the foreign spans of each trace arrived that
                were assembled; microseconds since the epoch.
        """
        for trace, (first, last) in arrivals.items():
            self._done(trace)
            self._failures.pop(trace, None)
            found = self._known.get(trace)
            if found is None:
                continue
            found.since, found.is_new = max(found.since, first), False
            if found.sightings > self._max_trace:
                found.since, found.sightings = last, 0

    def failed(self, due: Sequence[Due]) -> bool:
        """Have traces tried one by one; set one aside that failed alone again and again.

        Returns:
            Whether it was set aside for the first time. Its mark stays on disk.
        """
        self._alone.update(item.trace for item in due)
        if len(due) != 1:
            return False
        trace = due[0].trace
        self._failures[trace] = self._failures.get(trace, 0) + 1
        if self._failures[trace] % MAX_FAILURES:
            return False
        self._done(trace)
        self._aside[trace] = self._monotonic() + ASIDE_SECONDS
        return self._failures[trace] == MAX_FAILURES

    def _done(self, trace: bytes) -> None:
        waiting = self._waiting.pop(trace, None)
        self._firsts.pop(trace, None)
        self._large.pop(trace, None)
        self._alone.discard(trace)
        if waiting is not None:
            self.waiting_sightings -= waiting.sightings
