"""Finds where an import goes: to a running server if there is one, else into the folder at rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fuseboard_collector.errors import StoreError
from fuseboard_server import presence
from fuseboard_server.importing import Destination, IntoCollector, IntoStore
from fuseboard_server.serving import explain_store_error, make_folder
from fuseboard_server.settings import DATA_FILE, default_data_dir

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address

ANSWER_SECONDS = 60.0


@contextmanager
def destination(
    collector: str | None,
    data: Path | None,
    store: Address | None,
    token: str | None,
    read_token: str | None,
) -> Iterator[Destination]:
    """Yield where to import to.

    Args:
        collector: Address of a running server; nothing else is tried then.
        data: Data folder; the default one without. The server that owns it is used if it runs.
        store: A ClickHouse database; nothing else is tried then.
        token: The server's token for senders, where one is asked.
        read_token: Its token for readers, likewise.

    Raises:
        CommandError: If it can't be had.
    """
    if collector is None and store is None:
        folder = data if data is not None else default_data_dir()
        owner = presence.running(folder)
        collector = None if owner is None else owner.collector
    else:
        folder = Path()
    if collector is not None:
        yield _remote(collector, token, read_token)
        return
    with _opened(store or folder / DATA_FILE) as opened:
        yield opened


def _remote(collector: str, token: str | None, read_token: str | None) -> Destination:
    from fuseboard_collector.api import RemoteReader

    presence.require_answer(collector)
    reader = RemoteReader(collector, ANSWER_SECONDS, read_token)
    return IntoCollector(collector, reader, token)


@contextmanager
def _opened(place: Path | Address) -> Iterator[Destination]:
    from fuseboard_collector.store import Store, open_any

    if isinstance(place, Path):
        make_folder(place.parent)
    try:
        # Without an age at which rows are deleted: an import must not delete.
        store = open_any(place, retention_days=None)
    except StoreError as error:
        raise explain_store_error(error) from error
    try:
        where = f"the folder {place.parent}" if isinstance(place, Path) else str(place)
        yield IntoStore(store, where)
        if isinstance(store, Store):
            store.settle()
    finally:
        store.close()
