"""``fuseboard store info|check|compact|repair``: the data file's own commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fuseboard_server.commands.options import DATA_HELP, FOLDER, HttpUrl, resolve_data
from fuseboard_server.commands.tokens import read_token as with_read_token
from fuseboard_server.exits import CommandError, Exit


def _placed(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which store is meant."""
    data = click.option("--data", type=FOLDER, help=DATA_HELP)
    collector = click.option("--collector", type=HttpUrl(), help="Address of a running server.")
    placed: Callable[..., None] = data(collector(with_read_token(command)))
    return placed


@click.command()
@_placed
def info(
    data: Path | None, collector: str | None, read_token: str | None, read_token_file: str | None
) -> None:
    """Say how large the store is, how much of it is free, and whether it takes data."""
    from fuseboard_server.operating import explained, running_server

    folder = resolve_data(data)
    with explained("look at the store"):
        server = running_server(collector, folder, read_token_file or read_token)
        found = server.describe() if server is not None else _resting_info(folder)
    for label, value in _lines(found):
        click.echo(f"{label:<18}{value}")


def _resting_info(folder: Path) -> dict[str, Any]:
    from fuseboard_collector.store import open_at_rest
    from fuseboard_server.operating import data_file

    resting = open_at_rest(data_file(folder))
    try:
        return resting.describe()
    finally:
        resting.close()


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    free = found.get("free_block_bytes")
    lines = [("size", f"{found['size_bytes'] / 1e6:.1f} MB")]
    if free is not None:
        lines.append(("free in the file", f"{free / 1e6:.1f} MB"))
    lines.append(("oldest row", str(found.get("oldest_row") or "none")))
    if "schema_version" in found:
        lines.append(("schema version", str(found["schema_version"])))
    lines.append(
        ("takes data", f"no: {why}" if (why := found.get("unavailable_because")) else "yes")
    )
    return lines


@click.command()
@_placed
@click.pass_context
def check(
    ctx: click.Context,
    data: Path | None,
    collector: str | None,
    read_token: str | None,
    read_token_file: str | None,
) -> None:
    """Read everything in the store and name the tables that are damaged.

    Ends with exit code 4 if some are. A running server goes on, and only reads a damaged file.
    """
    from fuseboard_collector.operations import CHECK_PATH
    from fuseboard_server.operating import ask, data_file, explained, running_server

    folder = resolve_data(data)
    with explained("check the store"):
        server = running_server(collector, folder, read_token_file or read_token)
        if server is not None:
            damaged = ask(server, CHECK_PATH, {})["damaged"]
        else:
            damaged = _check_at_rest(data_file(folder))
    for damage in damaged:
        click.echo(f"{damage['table']}.{damage['column']} can't be read: {damage['why']}")
    if damaged:
        click.echo(
            "Restore the file from a backup, or save what can be read with `fuseboard store "
            "repair --salvage` while no server runs on it.",
            err=True,
        )
        ctx.exit(Exit.DATA_UNUSABLE)
    click.echo("everything can be read")


def _check_at_rest(path: Path) -> list[dict[str, str]]:
    from dataclasses import asdict

    from fuseboard_collector.store import open_at_rest
    from fuseboard_server.operating import progress

    resting = open_at_rest(path)
    try:
        tell = progress("reading")
        return [asdict(damage) for damage in resting.check(lambda _, share: tell(share))]
    finally:
        resting.close()


@click.command()
@_placed
def compact(
    data: Path | None, collector: str | None, read_token: str | None, read_token_file: str | None
) -> None:
    """Give what is free in the data file back to the disk.

    Takes room for a second file meanwhile. A running server goes on answering and asks senders
    to come back, which they do. It compacts by itself when more than half of the file is free.
    """
    from fuseboard_collector.operations import COMPACT_PATH
    from fuseboard_server.operating import ask, explained, running_server

    folder = resolve_data(data)
    with explained("compact the store"):
        server = running_server(collector, folder, read_token_file or read_token)
        done = ask(server, COMPACT_PATH, {}) if server is not None else _compact_at_rest(folder)
    before, after = done["before_bytes"] / 1e6, done["after_bytes"] / 1e6
    click.echo(f"{before:.1f} MB before, {after:.1f} MB now")


def _compact_at_rest(folder: Path) -> dict[str, int]:
    from fuseboard_collector.store import open_store
    from fuseboard_server.operating import data_file

    store = open_store(data_file(folder), retention_days=None)
    try:
        before = store.size_bytes()
        store.compact()
    finally:
        store.close()
    return {"before_bytes": before, "after_bytes": store.size_bytes()}


@click.command()
@click.option("--data", type=FOLDER, help=DATA_HELP)
@click.option(
    "--move-wal-aside",
    is_flag=True,
    help="Rename a damaged write-ahead log, and lose the newest rows, which only it has.",
)
@click.option(
    "--salvage",
    is_flag=True,
    help="Make a new data file of what can be read, and rename the damaged one.",
)
def repair(data: Path | None, move_wal_aside: bool, salvage: bool) -> None:
    """Save what a damaged data file still has. Nothing is deleted, and no server may run on it.

    Restoring a backup is better where there is one.
    """
    if move_wal_aside == salvage:
        raise CommandError("give --move-wal-aside or --salvage", Exit.USAGE)
    from fuseboard_collector.store import repair as repairing
    from fuseboard_server.operating import data_file, explained

    path = data_file(resolve_data(data))
    with explained("repair the store"):
        if move_wal_aside:
            saved = repairing.move_log_aside(path)
        else:
            saved = repairing.salvage(path, lambda table: click.echo(f"reading {table}", err=True))
    click.echo(f"what was damaged is at {saved.aside} now")
    for table, kept in saved.kept.items():
        lost = saved.lost[table]
        if kept or lost:
            click.echo(f"{table}: {kept} rows saved, {lost} lost")


COMMANDS = (info, check, compact, repair)
