"""``fuseboard export``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from fuseboard_server.commands.options import (
    Duration,
    one_store,
    read_from,
)
from fuseboard_server.exits import CommandError, Exit, writing_to

if TYPE_CHECKING:
    from fuseboard_collector.reading import Batches
    from fuseboard_collector.store.clickhouse.address import Address

KINDS = ("calls", "attempts", "transitions", "alerts")
FORMATS = ("jsonl", "csv", "parquet")


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@read_from
@click.option("--since", type=Duration(), help="Only what ended in the last, for example, 1h.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="How to write records.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write  [default: standard output]",
)
def export(
    kind: str,
    collector: str | None,
    data: Path | None,
    store: Address | None,
    read_token: str | None,
    read_token_file: str | None,
    since: float | None,
    form: str,
    output: Path | None,
) -> None:
    """Write calls, attempts, transitions of breakers, or alerts.

    With --collector, from that server. With --store, from that database; a database that only the
    environment names is asked where no other place is named. With --data, from the
    server that runs on that folder, or from the folder itself when none does. With none of
    these, from the first there is of: the server on the default folder, any server at
    http://127.0.0.1:4318 (a demo, for example), the default folder itself. Which one it was is
    said at the end, on standard error.
    """
    store = one_store(collector, data, store)
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise CommandError("parquet is binary: name a file with --output FILE", Exit.USAGE)
    from fuseboard_collector.errors import StoreError
    from fuseboard_server.reading import source

    folder = data.expanduser().absolute() if data is not None else None
    with source(collector, folder, store, read_token_file or read_token) as found:
        try:
            with found.reader.stream(f"export_{kind}", _window(since)) as answer:
                done = _write(answer, form, output, kind)
        except StoreError as error:
            raise CommandError(f"can't export {kind} from {found.place}: {error}") from error
        click.echo(f"{done}, read from {found.place}", err=True)


def _write(answer: Batches, form: str, output: Path | None, kind: str) -> str:
    """Write, and say what was written."""
    from fuseboard_server.exporting import WRITERS

    write = WRITERS[form]
    with writing_to(output or "standard output"):
        if output is None:
            _write_stdout(lambda stream: write(answer, stream))
            return kind
        with output.open("wb") as stream:
            written = write(answer, stream)
    return f"{written} {kind} written to {output}"


def _window(since: float | None) -> dict[str, object]:
    """Return the query's parameters; without --since everything."""
    start = None if since is None else datetime.now(UTC) - timedelta(seconds=since)
    return {"since": start, "until": None}


def _write_stdout(write: Callable[[BinaryIO], object]) -> None:
    stream = sys.stdout.buffer
    try:
        write(stream)
        stream.flush()
    except OSError as error:
        # What is still buffered would fail once more at exit, and Python complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader (`| head`) has seen enough
            raise
