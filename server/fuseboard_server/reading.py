"""Finds something to read from: the running server if there is one, else the folder at rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fuseboard_collector.errors import StoreError
from fuseboard_collector.reading import StreamingReader
from fuseboard_server import presence
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.serving import explain_store_error
from fuseboard_server.settings import DATA_FILE, DEFAULT_COLLECTOR, default_data_dir

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address

ANSWER_SECONDS = 600.0
"""How long a collector may take to put a large answer together."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something to read from.

    Attributes:
        place: Where its data are, in words that follow "read from".
    """

    reader: StreamingReader
    place: str


@contextmanager
def source(
    collector: str | None,
    data: Path | None,
    store: Address | None = None,
    token: str | None = None,
) -> Iterator[Source]:
    """Yield a reader of a collector's, a folder's or a database's data, and say whose they are.

    Args:
        collector: Address of a running server; nothing else is tried then.
        data: Data folder; the server that owns it is asked, or it is read at rest. Without
            either: the server on the default folder, else the one at the default address, else
            the default folder at rest.
        store: A ClickHouse database; nothing else is tried then.
        token: A server's token for reading, where one is asked.

    Raises:
        CommandError: If there is nothing to read from.
    """
    if collector is not None:
        yield _remote(collector, token)
        return
    if store is not None:
        with _in_database(store) as database:
            yield Source(database, str(store))
        return
    folder = data if data is not None else default_data_dir()
    owner = presence.running(folder)
    if owner is not None:
        yield _remote(owner.collector, token)
        return
    if data is None and presence.answers(DEFAULT_COLLECTOR):
        yield _remote(DEFAULT_COLLECTOR, token)
        return
    with _at_rest(folder) as resting:
        yield Source(resting, f"the folder {folder}")


def _remote(collector: str, token: str | None) -> Source:
    from fuseboard_collector.api import RemoteReader

    presence.require_answer(collector)
    reader = RemoteReader(collector, timeout=ANSWER_SECONDS, token=token)
    return Source(reader, f"the server at {collector}")


@contextmanager
def _in_database(address: Address) -> Iterator[StreamingReader]:
    from fuseboard_collector.store.clickhouse.store import open_clickhouse

    try:
        # Without an age at which rows are deleted: reading must not delete.
        store = open_clickhouse(address, retention_days=None)
    except StoreError as error:
        raise explain_store_error(error) from error
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _at_rest(folder: Path) -> Iterator[StreamingReader]:
    from fuseboard_collector.store import open_at_rest

    path = folder / DATA_FILE
    if not path.exists():
        raise CommandError(
            f"there is no data file in {folder} and no server is running. Name the folder with "
            "--data DIR or a running server with --collector URL.",
            Exit.DATA_UNUSABLE,
        )
    try:
        store = open_at_rest(path)
    except StoreError as error:
        raise explain_store_error(error) from error
    try:
        yield store
    finally:
        store.close()
