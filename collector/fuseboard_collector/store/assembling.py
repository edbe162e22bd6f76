"""When foreign spans are assembled: after their commit, between the commits of others."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from fuseboard.clock import Clock
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.assembler import Report, assemble_traces, naive_time
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.staging import HORIZON_SECONDS, Due, News, Staging
from fuseboard_collector.store.writer import Command, Writer

logger = logging.getLogger(__name__)

Connection = duckdb.DuckDBPyConnection
BATCH_SIGHTINGS = 800
"""Foreign spans of tools, and traces, of one transaction: some 70 ms, for which others wait."""
EXPIRY_SECONDS = 600.0
MAX_LOOKED_AT = 2_000_000
"""Foreign spans of tools that a start looks at, the newest; older ones are found when needed."""


class Assembling:
    """Ties the bookkeeping of traces to the writer's transactions.

    Its thread alone calls it, but for :meth:`settle`.
    """

    def __init__(self, staging: Staging, stats: Stats, clock: Clock) -> None:
        self.staging = staging
        self._stats = stats
        self._clock = clock
        self._expire_at = clock.monotonic() + EXPIRY_SECONDS

    def reload(self, cursor: Connection) -> None:
        """Take up what the last process left, or this one before the file was opened anew."""
        marks = cursor.execute(_sql("staged_marks")).fetchall()
        ((amount, newest),) = cursor.execute(_sql("staged_amount")).fetchall()
        since = 0
        if amount > MAX_LOOKED_AT:
            since = newest - int(HORIZON_SECONDS * 1e6 * MAX_LOOKED_AT / amount)
        bound = {"since": naive_time(since), "most": self.staging.max_known}
        known = cursor.execute(_sql("staged_known"), bound).fetchall()
        self.staging.reload(
            [(bytes.fromhex(trace), since) for trace, since in marks],
            [(bytes.fromhex(trace), *rest) for trace, *rest in known],
            has_all=not since,
        )

    def settle(self, writer: Writer, quiet_since: float, seconds: float) -> None:
        """Have traces assembled now, and wait.

        Args:
            writer: On whose thread.
            quiet_since: Traces of which nothing came since then, in monotonic seconds.
            seconds: When to stop waiting.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            step = self.step(quiet_since)
            command = step.command()
            writer.submit(command)
            # A step that failed has set aside what it could not store; its reason is logged.
            command.done.exception(seconds)
            if not step.due:
                break

    # --- in the transaction that brings rows ---------------------------------------------
    def news(
        self, keys: Mapping[str, Sequence[bytes]], tables: Mapping[str, Sequence[pa.Table]]
    ) -> News:
        """Return what new rows are to traces with foreign spans.

        Args:
            keys: Their keys by table.
            tables: The rows by table.
        """
        sightings = tables.get("sightings")
        if not sightings:
            return self.staging.news(keys, None)
        arrivals = [pc.min(rows["received_at"]).cast(pa.int64()).as_py() for rows in sightings]
        return self.staging.news(keys, min(arrivals))

    def mark(self, connection: Connection, news: News) -> None:
        """Write down which traces wait, in the transaction that is open."""
        if not news.unmarked:
            return
        since = [self.staging.since(trace, news) for trace in news.unmarked]
        marks = pa.table(
            {
                "trace_id": [trace.hex() for trace in news.unmarked],
                "since": pa.array(since, pa.timestamp("us")),
            }
        )
        connection.register("incoming", marks)
        try:
            connection.execute(_sql("staged_mark"))
        finally:
            connection.unregister("incoming")

    def note(self, news: News) -> None:
        """Take in what was committed."""
        self.staging.note(news)
        self._stats.add("staged_traces", len(news.unmarked))

    # --- transactions of its own ---------------------------------------------------------
    def due(self) -> Command | None:
        """Return what is to be done next; None if nothing is due."""
        if self.staging.due(1):
            return self.step().command()
        now = self._clock.monotonic()
        if now < self._expire_at:
            return None
        self._expire_at = now + EXPIRY_SECONDS
        return Command(self._expire)

    def step(self, quiet_since: float | None = None) -> Step:
        """Return a bounded piece of work.

        Args:
            quiet_since: Monotonic seconds: take traces whose last span came until then, whatever
                the grace time.
        """
        return Step(self, quiet_since)

    def assemble(self, connection: Connection, due: Sequence[Due]) -> Report:
        """Assemble traces within the transaction that is open."""
        return assemble_traces(connection, due)

    def stored(self, report: Report) -> None:
        """Count what an assembly did, after its commit."""
        self.staging.assembled(report.arrivals)
        self._stats.add("assembled_calls", report.calls)
        self._stats.add("reassembled_traces", report.again)
        self._stats.add("late_relatives", report.late)

    def failed(self, due: Sequence[Due], error: BaseException) -> None:
        """Go on without traces that can't be stored; one by one first, to find the culprit."""
        if self.staging.failed(due):
            self._stats.add("assembly_failures")
            logger.error(
                "trace %s can't be assembled; its spans are kept and it is tried again: %s",
                due[0].trace.hex(), (str(error).splitlines() or [repr(error)])[0],
            )  # fmt: skip

    def _expire(self, connection: Connection) -> None:
        before = self._clock.time_ns() // 1000 - int(HORIZON_SECONDS * 1e6)
        connection.execute(_sql("staged_expire"), {"before": naive_time(before)})
        self.staging.forget_before(before)

    def describe(self) -> dict[str, object]:
        """Return what waits, ready for JSON."""
        oldest = self.staging.oldest_seconds()
        return {
            "traces": self.staging.waiting_traces,
            "spans": self.staging.waiting_sightings,
            "oldest_seconds": None if oldest is None else round(oldest, 3),
        }


class Step:
    """One transaction that assembles what is due."""

    def __init__(self, assembling: Assembling, quiet_since: float | None) -> None:
        self._assembling = assembling
        self._quiet_since = quiet_since
        self._report: Report | None = None
        self.due: Sequence[Due] = ()
        """What it took up; known once it ran."""

    def command(self) -> Command:
        """Return it for the writer's queue."""
        command = Command(self._run)
        command.done.add_done_callback(self._finish)
        return command

    def _run(self, connection: Connection) -> None:
        staging = self._assembling.staging
        self.due = staging.due(BATCH_SIGHTINGS, quiet_since=self._quiet_since)
        if self.due:
            self._report = self._assembling.assemble(connection, self.due)

    def _finish(self, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            self._assembling.failed(self.due, error)
        elif self._report is not None:
            self._assembling.stored(self._report)


def _sql(name: str) -> str:
    return load(name, "writes").statements[0].sql
