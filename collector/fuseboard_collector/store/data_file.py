"""The data file while a store runs: opened, closed and opened again by the writer alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import duckdb

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store.checking import Damage, scan
from fuseboard_collector.store.compaction import remove_leftovers
from fuseboard_collector.store.database import Database, Limits
from fuseboard_collector.store.health import Health

logger = logging.getLogger(__name__)

REOPENING_SECONDS = 5.0
"""For which readers wait for a file that is being opened again, and a compaction for readers."""

Begun = TypeVar("Begun")


class DataFile:
    """What is open at present. Any thread may ask for it; only the writer's opens and closes."""

    def __init__(
        self,
        path: Path,
        limits: Limits,
        health: Health,
        unavailable: Callable[[], StoreError | None],
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            path: The file.
            limits: What the engine may use.
            health: Told when the file is opened, closed, or found damaged.
            unavailable: Returns why the file can't be opened; None while that is not known.
        """
        self.database: Database | None = None
        """What is open; None while nothing is."""
        self._path = path
        self._limits = limits
        self._health = health
        self._unavailable = unavailable
        self._opened = threading.Condition()
        self._over = False
        self._patience = 0.0

    def open(self, begin: Callable[[Database], Begun]) -> Begun:
        """Open the file, and let readers at it once all is ready.

        Args:
            begin: Makes what the writer needs of it; if that fails, the file is closed again.

        Raises:
            StoreError: If it can't be opened.
        """
        database = Database(self._path, self._limits)
        try:
            remove_leftovers(self._path)
            begun = begin(database)
            needs_scan = self._health.opened()
        except BaseException:
            database.close()
            raise
        with self._opened:
            self.database = database
            self._opened.notify_all()
        if needs_scan:
            threading.Thread(target=self._scan, name="fuseboard-scan", daemon=True).start()
        return begun

    def current(self) -> Database:
        """Return what is open; wait a little while it is being opened again.

        Raises:
            StoreError: If it is not open.
        """
        with self._opened:
            self._opened.wait_for(self._is_settled, REOPENING_SECONDS)
            if self.database is None:
                raise self._unavailable() or StoreError("the store is closed")
            return self.database

    def _is_settled(self) -> bool:
        """Whether waiting will not open the file: it is, or it can't be, or is not to be."""
        return self.database is not None or self._unavailable() is not None or self._over

    def end(self) -> None:
        """Have nobody wait for another opening."""
        self._over = True

    def be_patient(self) -> None:
        """Let queries that run come to their end at the next closing."""
        self._patience = REOPENING_SECONDS

    def close(self) -> None:
        """Close what is open, if anything is."""
        database, self.database = self.database, None
        if database is not None:
            database.close(patience=self._patience)
            self._patience = 0.0
            self._health.closed()

    def check(self) -> list[Damage]:
        """Read everything; return what can't be read, and take note of it."""
        with self.current().cursor() as cursor:
            found = list(scan(cursor))
        if found:
            self._health.damaged(found[0].why)
        else:
            self._health.sound()
        return found

    def _scan(self) -> None:
        """Look for damage after the machine went down, or after some was found before."""
        try:
            self.check()
        except (StoreError, duckdb.Error) as error:
            logger.info("the scan of %s did not come to its end: %s", self._path, error)
