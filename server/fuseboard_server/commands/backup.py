"""``fuseboard backup``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fuseboard_server.commands.options import DATA_HELP, FOLDER, HttpUrl, resolve_data
from fuseboard_server.commands.tokens import read_token as with_read_token
from fuseboard_server.exits import CommandError, Exit


@click.command()
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("--data", type=FOLDER, help=DATA_HELP)
@click.option("--collector", type=HttpUrl(), help="Address of a running server, for its data.")
@with_read_token
def backup(
    destination: Path,
    data: Path | None,
    collector: str | None,
    read_token: str | None,
    read_token_file: str | None,
) -> None:
    """Copy the data file as it is at this moment to DESTINATION, and read the copy back.

    DESTINATION is a new file, or a folder in which one is made. A server that runs goes on
    storing meanwhile; it needs room for the copy beside its data. To restore, put the copy in a
    data folder as `fuseboard.duckdb` while no server runs on it.
    """
    if collector is not None and data is not None:
        raise CommandError("give --collector or --data, not both", Exit.USAGE)
    from fuseboard_collector.store.backup import copy_at_rest, verify
    from fuseboard_collector.store.copying import remove
    from fuseboard_server.operating import data_file, explained, fetch_backup, running_server

    target = _target(destination)
    with explained(f"back up to {target}"):
        folder = resolve_data(data)
        server = running_server(collector, folder, read_token_file or read_token)
        partial = target.with_name(f".{target.name}.partial")
        remove(partial)
        # Calls are nobody else's business, as in the data folder, while they are copied, too.
        mask = os.umask(0o077)
        try:
            expected = None
            if server is not None:
                expected = fetch_backup(server, partial)
            else:
                copy_at_rest(data_file(folder), partial)
            click.echo("reading the copy back", err=True)
            rows = verify(partial)
            if expected is not None and rows != expected:
                raise CommandError(f"the copy has {rows}, not {expected}; it was removed")
            _publish(partial, target)
        finally:
            os.umask(mask)
            remove(partial)
    size = target.stat().st_size / 1e6
    click.echo(
        f"{target}: {size:.1f} MB, {rows.get('tool_calls', 0)} calls, read back and complete"
    )


def _target(destination: Path) -> Path:
    from datetime import UTC, datetime

    target = destination.expanduser().absolute()
    if target.is_dir():
        target /= f"fuseboard-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.duckdb"
    if target.exists():
        raise CommandError(
            f"{target} exists already, and a backup overwrites nothing. Name another file.",
            Exit.USAGE,
        )
    return target


def _publish(partial: Path, target: Path) -> None:
    """Give the copy its name, unless somebody else took it meanwhile."""
    from fuseboard_collector.store.space import sync_folder

    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError as error:
        # Sticks and shares often know no links: there a name taken in this instant would be lost.
        if target.exists():
            raise FileExistsError(f"{target} was made meanwhile") from error
        partial.rename(target)
    sync_folder(target.parent)
