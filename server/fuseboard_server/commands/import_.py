"""``fuseboard import``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseboard_server.commands.options import FOLDER, STORE, STORE_HELP, HttpUrl, one_store
from fuseboard_server.commands.tokens import ingest_token
from fuseboard_server.commands.tokens import read_token as with_read_token
from fuseboard_server.exits import Exit
from fuseboard_server.settings import ENV_STORE

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address

PROGRESS_SECONDS = 2.0


@click.command(name="import")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--collector", type=HttpUrl(), help="Address of a running server to send to.")
@click.option("--data", type=FOLDER, help="Data folder, whether a server runs on it or not.")
@click.option("--store", type=STORE, envvar=ENV_STORE, show_envvar=True, help=STORE_HELP)
@ingest_token
@with_read_token
@click.pass_context
def import_(
    ctx: click.Context,
    files: tuple[Path, ...],
    collector: str | None,
    data: Path | None,
    store: Address | None,
    token: str | None,
    token_file: str | None,
    read_token: str | None,
    read_token_file: str | None,
) -> None:
    """Read telemetry from FILES that collectors and exporters wrote.

    OTLP as JSON (a document, an array, or one per line) or as protobuf (a request, or many with
    their sizes), also packed with gzip or zstd; traces, logs and metrics are told apart. Spans
    that are stored already are left out, so an import can be repeated. It goes to the server of
    --collector, the database of --store, or the data folder, through the server that runs on it
    if there is one.

    Ends with exit code 1 if a file could not be read to its end or anything was rejected.
    """
    store = one_store(collector, data, store)
    from fuseboard_server.importing import import_file
    from fuseboard_server.writing import destination

    folder = data.expanduser().absolute() if data is not None else None
    is_sound = True
    with destination(
        collector, folder, store, token_file or token, read_token_file or read_token
    ) as to:
        for file in files:
            with _progress(file) as progress:
                report = import_file(file, to, progress)
            click.echo(f"{file}: {report.words()}")
            is_sound = is_sound and not report.failure and not report.rejected
        click.echo(f"imported into {to.place}", err=True)
    if not is_sound:
        ctx.exit(Exit.FAILED)


@contextmanager
def _progress(file: Path) -> Iterator[Callable[[int], None]]:
    """Yield what tells on a terminal, now and then, how far a long import is."""
    total = file.stat().st_size
    last = time.monotonic()
    shown = False

    def tell(position: int) -> None:
        nonlocal last, shown
        if sys.stderr.isatty() and time.monotonic() - last > PROGRESS_SECONDS:
            last, shown = time.monotonic(), True
            share = min(100, 100 * position // max(1, total))
            click.echo(f"\r{file}: {share} %", nl=False, err=True)

    yield tell
    if shown:
        click.echo("\r", nl=False, err=True)
