"""Finds the store that a command operates: the running server's, or the file at rest."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from fuseboard_collector.errors import StoreError
from fuseboard_collector.operations import BACKUP_PATH, ROWS_HEADER
from fuseboard_collector.remote import RemoteReader
from fuseboard_server import presence
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.serving import explain_store_error
from fuseboard_server.settings import DATA_FILE

PATIENCE_SECONDS = 3600.0
CHUNK = 1024 * 1024


def running_server(collector: str | None, folder: Path, token: str | None) -> RemoteReader | None:
    """Return the server to ask: the one at an address, else the one on a folder, if it runs.

    Raises:
        CommandError: If none answers at the address.
    """
    if collector is None:
        owner = presence.running(folder)
        return None if owner is None else RemoteReader(owner.collector, PATIENCE_SECONDS, token)
    presence.require_answer(collector)
    return RemoteReader(collector, PATIENCE_SECONDS, token)


def data_file(folder: Path) -> Path:
    """Return the data file of a folder.

    Raises:
        CommandError: If there is none.
    """
    path = folder / DATA_FILE
    if not path.exists():
        raise CommandError(
            f"there is no data file in {folder}. Name another folder with --data DIR.",
            Exit.DATA_UNUSABLE,
        )
    return path


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn what a store or the disk refuses into the command line's way of failing.

    Args:
        action: What was being done, to begin the message with.
    """
    try:
        yield
    except StoreError as error:
        failed = explain_store_error(error)
        raise CommandError(f"can't {action}: {error}", failed.exit_code) from error
    except OSError as error:
        raise CommandError(f"can't {action}: {error}") from error


def ask(server: RemoteReader, path: str, wanted: Mapping[str, object]) -> dict[str, Any]:
    """Have a server do something; return its answer."""
    with server.operated(path, wanted) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found


def fetch_backup(server: RemoteReader, destination: Path) -> dict[str, int]:
    """Write a server's backup into a file; return the rows by table that it should have."""
    with server.operated(BACKUP_PATH, {}) as answer:
        rows: dict[str, int] = json.loads(answer.headers[ROWS_HEADER])
        with destination.open("xb") as file:
            _copy(answer, file, int(answer.headers["content-length"]))
            os.fsync(file.fileno())
    return rows


def _copy(answer: http.client.HTTPResponse, file: BinaryIO, size: int) -> None:
    tell = progress("copying")
    written = 0
    while piece := answer.read(CHUNK):
        file.write(piece)
        written += len(piece)
        tell(written / size)
    if written != size:
        raise StoreError(f"the answer ended after {written} of {size} bytes")


def progress(label: str) -> Callable[[float], None]:
    """Return what says on standard error how far something is, at each tenth.

    Args:
        label: What is going on.
    """
    told = 0

    def tell(share: float) -> None:
        nonlocal told
        tenths = int(share * 10)
        if tenths > told:
            told = tenths
            click.echo(f"{label}: {tenths * 10} %", err=True)

    return tell
