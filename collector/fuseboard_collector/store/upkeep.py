"""What the writer's thread does for the file between commits: one bounded step at a time."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path

from fuseboard_collector.errors import StoreError, StoreReadOnlyError
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.compaction import compact, is_worthwhile
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.retention import Keep, Plan, Retention, is_over
from fuseboard_collector.store.space import MIB, usage
from fuseboard_collector.store.writer import Command, Connection

logger = logging.getLogger(__name__)

COMPACTION_PAUSE_SECONDS = 3600.0
"""After a compaction, whether it came to its end or not."""


class Upkeep:
    """Deletes what has expired and compacts the file where that pays."""

    def __init__(
        self,
        path: Path,
        retention: Retention,
        floor: int,
        stats: Stats,
        monotonic: Callable[[], float],
        swapped: Callable[[], None],
    ) -> None:
        """Prepare.

        Args:
            path: The data file.
            retention: Says what has expired.
            floor: Bytes of free disk that must be left.
            stats: Counts deleted rows and compactions.
            monotonic: Returns seconds that never run backwards.
            swapped: Called when another file has taken the place of the open one.
        """
        self.copy_id: str | None = None
        """What the file in place must have in its ``meta``, after a compaction."""
        self.compacting: StoreReadOnlyError | None = None
        """Why nothing is stored, while the file is being compacted."""
        self._path = path
        self._retention = retention
        self._floor = floor
        self._stats = stats
        self._monotonic = monotonic
        self._swapped = swapped
        self._steps: deque[datetime] = deque()
        self._deleted = False
        self._no_compaction_before = float("-inf")

    def next(self) -> Command | None:
        """Return what is due on the writer's thread; None if nothing is."""
        if self._steps:
            return _logged(Command(deletion(self._steps.popleft())))
        if self._deleted:
            self._deleted = False
            return _logged(Command(self._settle, in_transaction=False))
        if self._retention.is_time():
            return _logged(Command(self._look, in_transaction=False))
        return None

    def plan(self, connection: Connection, keep: Keep | None = None) -> Plan:
        """Return what retention would delete now.

        Args:
            connection: The file.
            keep: What to keep; as configured by default.
        """
        return self._retention.plan(connection, usage(self._path, connection), keep)

    def compact(self, connection: Connection) -> None:
        """Compact the file; the writer must reopen it before it does anything else.

        Raises:
            StoreError: If there is no room for the copy; then the file is as it was.
        """
        before = usage(self._path, connection)
        self.compacting = StoreReadOnlyError(
            f"{self._path} is being compacted, which takes a moment; try again", "compaction"
        )
        try:
            self.copy_id = compact(connection, self._path, self._floor)
        finally:
            self.compacting = None
            self._no_compaction_before = self._monotonic() + COMPACTION_PAUSE_SECONDS
        self._stats.add("compactions")
        logger.info("compacted %s from %d MiB", self._path, before.total // MIB)
        self._swapped()

    def _look(self, connection: Connection) -> None:
        used = usage(self._path, connection)
        if self._retention.due() or is_over(used, self._retention.keep):
            plan = self._retention.plan(connection, used)
            self._steps.extend(plan.steps)
            self._deleted = bool(plan.steps)
            self._stats.add("expired_rows", plan.rows, plan.why)
        elif is_worthwhile(used, self._retention.keep.max_bytes):
            self._compact_if_possible(connection)

    def _settle(self, connection: Connection) -> None:
        # Only a checkpoint frees the blocks of deleted rows.
        connection.execute("CHECKPOINT")
        if is_worthwhile(usage(self._path, connection), self._retention.keep.max_bytes):
            self._compact_if_possible(connection)

    def _compact_if_possible(self, connection: Connection) -> None:
        if self._monotonic() < self._no_compaction_before:
            return
        try:
            self.compact(connection)
        except StoreError as error:
            logger.warning("the file is not compacted: %s", error)


def _logged(command: Command) -> Command:
    """Have the command's failure logged: nobody waits for it."""

    def report(done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            logger.warning("maintenance of the store failed: %s", error)

    command.done.add_done_callback(report)
    return command


def deletion(before: datetime) -> Callable[[Connection], None]:
    """Return what deletes the rows that came before a time, for a transaction."""
    query = load("delete_expired", "writes")

    def run(connection: Connection) -> None:
        for statement in query.statements:
            named = {"before": before} if statement.parameters else None
            connection.execute(statement.sql, named).fetchall()

    return run
