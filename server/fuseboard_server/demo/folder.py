"""The folder of one demo run: removed at its end, or by a later run if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "fuseboard-demo-"
LOCK_FILE = "owner.lock"


@contextmanager
def demo_folder() -> Iterator[Path]:
    """Make a folder for this run and remove it at the end.

    Its owner holds a lock in it, which the kernel releases however the owner ends. A process id
    would not do: ids come again, and containers that share a folder have their own.
    """
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove the folders that killed runs of this user left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # still owned, not ours, or somebody else was quicker
            if _is_our_folder(folder):
                _remove_if_left(folder)


def _is_our_folder(path: Path) -> bool:
    found = path.lstat()  # a link to somewhere else is no folder of a demo
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _remove_if_left(folder: Path) -> None:
    lock = os.open(folder / LOCK_FILE, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _lock(folder: Path) -> int:
    """Return a lock that is held from the moment at which others can see it."""
    new = folder / f".{LOCK_FILE}"
    lock = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / LOCK_FILE)
    return lock
