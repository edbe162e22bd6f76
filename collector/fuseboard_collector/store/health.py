"""Whether the file is sound. One that is not is still read, but no longer written to.

What a disk lost shows only where it is read. So a full scan runs after the machine went down
without the store being closed, and what was found damaged is remembered in a note beside the file.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from pathlib import Path

from fuseboard_collector.errors import StoreReadOnlyError

logger = logging.getLogger(__name__)

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DAMAGE = re.compile(r"Corrupt database file|computed checksum", re.IGNORECASE)


def is_damage(error: BaseException) -> bool:
    """Tell whether the engine found the file damaged."""
    return _DAMAGE.search(str(error)) is not None


def note_path(path: Path) -> Path:
    """Return where the note on a data file is."""
    return path.with_name(path.name + ".health")


def forget(path: Path) -> None:
    """Remove the note: the file is another one now."""
    note_path(path).unlink(missing_ok=True)


def remembered_damage(path: Path) -> str | None:
    """Return what the note on a data file says is damaged; None if nothing is known."""
    damage = _read(note_path(path)).get("damage")
    return str(damage) if damage else None


def _read(note: Path) -> dict[str, object]:
    try:
        found = json.loads(note.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Health:
    """The state of one data file. Any thread may ask and tell."""

    def __init__(self, path: Path, boot_id: Path = _BOOT_ID) -> None:
        """Start without knowing anything; :meth:`opened` reads the note.

        Args:
            path: The data file.
            boot_id: A file whose contents differ each time the machine starts; without it no
                restart of the machine is noticed.
        """
        self._path = path
        self._note = note_path(path)
        self._boot_id = boot_id
        self._lock = threading.Lock()
        self._fault: StoreReadOnlyError | None = None

    @property
    def fault(self) -> StoreReadOnlyError | None:
        """Why nothing is written; None if the file is sound as far as is known."""
        return self._fault

    def check(self) -> None:
        """Return if the file may be written to.

        Raises:
            StoreReadOnlyError: If it is damaged.
        """
        if self._fault is not None:
            raise self._fault

    def opened(self) -> bool:
        """Note that the file is open; tell whether it has to be scanned."""
        before = _read(self._note)
        damage = before.get("damage")
        if damage:
            self._fault = self._error(str(damage))
        crashed = before.get("open") is True and before.get("boot_id") != self._boot()
        self._write(is_open=True)
        return bool(damage) or crashed

    def closed(self) -> None:
        """Note that the file was closed in order."""
        self._write(is_open=False)

    def notice(self, error: BaseException) -> StoreReadOnlyError | None:
        """Take note of an error of the engine; return what to tell if it means damage."""
        if not is_damage(error):
            return None
        self.damaged(str(error).splitlines()[0])
        return self._fault

    def damaged(self, what: str) -> None:
        """Stop writing.

        Args:
            what: What is damaged, as found first.
        """
        with self._lock:
            if self._fault is not None:
                return
            self._fault = self._error(what)
        logger.error("%s", self._fault)
        self._write(is_open=True)

    def sound(self) -> None:
        """Take writes again: a full scan found nothing wrong."""
        with self._lock:
            was, self._fault = self._fault, None
        if was is not None:
            logger.warning("%s is sound after all and is written to again", self._path)
        self._write(is_open=True)

    def _error(self, what: str) -> StoreReadOnlyError:
        return StoreReadOnlyError(
            f"{self._path} is damaged and is only read from now on, nothing new is stored: {what}. "
            "`fuseboard store check` says which tables are affected. Restore the file from a "
            "backup, or save what can be read with `fuseboard store repair --salvage`.",
            what,
        )

    def _boot(self) -> str | None:
        try:
            return self._boot_id.read_text().strip()
        except OSError:
            return None

    def _write(self, *, is_open: bool) -> None:
        fault = self._fault
        note = {
            "open": is_open,
            "boot_id": self._boot(),
            "damage": None if fault is None else fault.what,
        }
        temporary = self._note.with_name(self._note.name + ".new")
        try:
            temporary.write_text(json.dumps(note) + "\n")
            temporary.replace(self._note)
        except OSError as error:
            logger.warning("%s can't be written: %s", self._note, error)
