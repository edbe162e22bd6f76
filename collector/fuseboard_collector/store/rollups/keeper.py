"""Keeps rollups equal to the raw rows: rolls up again what changed.

Whoever changes raw rows marks their spans in the same transaction. The keeper claims a span,
computes its rollup beside the running writes, and puts it in place on the writer's thread, table by
table; so a write waits for the replacement of some ten thousand rows at most, never for the
counting. A span that was marked again meanwhile keeps its mark, and its rollup is thrown away. A
process that dies in between leaves a claimed span, which readers and the next keeper take for
dirty.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import duckdb
import pyarrow as pa

from fuseboard.clock import Clock
from fuseboard_collector.errors import StoreError
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.rollups.tables import TABLES

logger = logging.getLogger(__name__)

Connection = duckdb.DuckDBPyConnection

INTERVAL_SECONDS: Final = 5.0
"""Between looks for spans to roll up."""

GRACE: Final = timedelta(seconds=60)
"""How long after its end a span is left alone: the last of it arrives within seconds."""

REST_SECONDS: Final = 30.0
"""Least time between two rollups of one span that rows keep arriving for."""

PAUSE_SECONDS: Final = 0.02
"""Between two runs, so that a long backlog leaves the processor to others."""

MOST_SPANS: Final = 48
MOST_ROWS: Final = 200_000
"""Together they bound one run: what is empty goes fast, what is full in small pieces."""

_FOLDER: Final = "rollups/sql"


@dataclass(frozen=True, slots=True)
class Run:
    """Spans of one length, one after the other, that are rolled up together.

    Attributes:
        spans: Their starts in order, naive UTC; what ended at the very start belongs before it.
        hours: The length of each.
    """

    spans: tuple[datetime, ...]
    hours: int

    def bounds(self) -> dict[str, object]:
        """Return start and end as parameters of a rollup's query."""
        return {"since": self.spans[0], "until": self.spans[-1] + timedelta(hours=self.hours)}

    def names(self) -> dict[str, object]:
        """Return the spans as parameters."""
        return {"spans": list(self.spans), "hours": self.hours}


class Keeper:
    """A thread that rolls up closed dirty spans, newest first, one after the other."""

    def __init__(
        self,
        cursor: Callable[[], AbstractContextManager[Connection]],
        write: Callable[[Callable[[Connection], None]], None],
        clock: Clock,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        """Prepare; :meth:`start` starts the thread.

        Args:
            cursor: Opens a cursor for reading.
            write: Runs work on the writer's thread in a transaction of its own, and waits.
            clock: Source of time.
            interval: Seconds between looks.
        """
        self._cursor = cursor
        self._write = write
        self._clock = clock
        self._interval = interval
        self._stopping = threading.Event()
        self._turn = threading.Lock()
        self._rolled_at: dict[tuple[datetime, int], float] = {}
        self._thread = threading.Thread(target=self._run, name="fuseboard-keeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a rollup that is being computed is given up."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def catch_up(self) -> int:
        """Roll up every closed dirty span now; return how many were."""
        done = 0
        with self._turn:
            while not self._stopping.is_set() and (run := self._next(impatient=True)):
                done += self._roll(run)
        return done

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                with self._turn:
                    while (run := self._next()) and not self._stopping.wait(PAUSE_SECONDS):
                        self._roll(run)
            except StoreError as error:
                logger.debug("rollups wait: %s", error)  # the store is closed or not open yet
            except Exception:
                # This thread's end would make long windows slower and slower.
                logger.exception("a rollup failed; it is tried again")

    def _next(self, *, impatient: bool = False) -> Run | None:
        """Return what to roll up next, if anything."""
        now = self._clock.monotonic()
        with self._cursor() as cursor:
            sql = load("due_spans", _FOLDER).statements[0].sql
            due = cursor.execute(sql, self._closed()).fetchall()
            waiting = set(due)
            self._rolled_at = {key: at for key, at in self._rolled_at.items() if key in waiting}
            rested = [
                key
                for key in due
                if impatient or now - self._rolled_at.get(key, -REST_SECONDS) >= REST_SECONDS
            ]
            return _bounded(cursor, rested) if rested else None

    def _closed(self) -> dict[str, object]:
        now = datetime.fromtimestamp(self._clock.time_ns() / 1e9, UTC).replace(tzinfo=None)
        return {"closed": now - GRACE}

    def _roll(self, run: Run) -> int:
        """Roll up spans; return for how many that held."""
        now = self._clock.monotonic()
        self._rolled_at.update({(span, run.hours): now for span in run.spans})

        def claim(connection: Connection) -> None:
            _execute(connection, "claim_spans", run.names())

        self._write(claim)
        rows = self._counted(run)
        held: list[datetime] = []
        for table, counted in rows.items():
            self._write(partial(_put, run=run, table=table, counted=counted))
        self._write(lambda connection: held.extend(_unclaim(connection, run)))
        return len(held)

    def _counted(self, run: Run) -> Mapping[str, pa.Table]:
        """Return the rollups' rows by table, all from one state of the store."""
        with self._cursor() as cursor:
            cursor.execute("BEGIN")
            return {
                table: cursor.sql(
                    load(table, _FOLDER).statements[0].sql, params=run.bounds()
                ).to_arrow_table()
                for table in TABLES[run.hours]
            }


def waiting_hours(cursor: Connection) -> int:
    """Return how many hours are not rolled up, the present one included."""
    ((hours,),) = cursor.execute(load("waiting_hours", _FOLDER).statements[0].sql).fetchall()
    return int(hours)


def _bounded(cursor: Connection, due: Sequence[tuple[datetime, int]]) -> Run:
    """Return the first due span and those before it that can be rolled up along with it."""
    newest, hours = due[0]
    spans = [newest]
    for span, length in due[1:MOST_SPANS]:
        if length != hours or span + timedelta(hours=hours) != spans[-1]:
            break
        spans.append(span)
    counting = load("rows_between", _FOLDER).statements[0].sql
    while True:
        run = Run(tuple(reversed(spans)), hours)
        ((rows,),) = cursor.execute(counting, run.bounds()).fetchall()
        if rows <= MOST_ROWS or len(spans) == 1:
            return run
        spans = spans[: len(spans) // 2]


def _put(connection: Connection, run: Run, table: str, counted: pa.Table) -> None:
    """Replace a rollup of those spans that nobody marked since they were claimed."""
    chosen = {"spans": _held(connection, run), "hours": run.hours}
    mine = "time_bucket(to_hours($hours::BIGINT), span) IN (SELECT unnest($spans::TIMESTAMP[]))"
    connection.execute(
        f"DELETE FROM {table} "  # noqa: S608 - the tables are ours
        f"WHERE span >= $since::TIMESTAMP AND span < $until::TIMESTAMP AND {mine}",
        {**chosen, **run.bounds()},
    )
    connection.register("counted", counted)
    try:
        connection.execute(
            f"INSERT INTO {table} BY NAME SELECT * FROM counted WHERE {mine}",  # noqa: S608
            chosen,
        )
    finally:
        connection.unregister("counted")


def _unclaim(connection: Connection, run: Run) -> list[datetime]:
    """Take the marks away from spans whose rollups are all in place; return these."""
    held = _held(connection, run)
    if held:
        _execute(connection, "unclaim_spans", {"spans": held, "hours": run.hours})
    return held


def _held(connection: Connection, run: Run) -> list[datetime]:
    return [span for (span,) in _execute(connection, "held_spans", run.names())]


def _execute(
    connection: Connection, name: str, bound: Mapping[str, object]
) -> list[tuple[datetime, ...]]:
    found: list[tuple[datetime, ...]] = []
    for statement in load(name, _FOLDER).statements:
        found = connection.execute(statement.sql, bound).fetchall()
    return found
