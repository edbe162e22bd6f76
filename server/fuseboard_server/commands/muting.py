"""``fuseboard alerts mute|unmute|mutes``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseboard_server.commands.options import DATA_HELP, FOLDER, Duration, HttpUrl, resolve_data
from fuseboard_server.commands.tokens import read_token as with_read_token
from fuseboard_server.commands.tokens import write_token as with_write_token
from fuseboard_server.exits import CommandError, Exit

if TYPE_CHECKING:
    from fuseboard_alerts.mute_book import MuteBook
    from fuseboard_alerts.mutes import Mute

DEFAULT_SECONDS = 7200.0


def _placed(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which store is meant."""
    data = click.option("--data", type=FOLDER, help=DATA_HELP)
    collector = click.option("--collector", type=HttpUrl(), help="Address of a running server.")
    placed: Callable[..., None] = data(collector(command))
    return placed


@click.command()
@click.argument("alert")
@click.option("--reason", required=True, help="Why; whoever looks next must know.")
@click.option("--for", "length", type=Duration(), help="How long, like 30m or 8h  [default: 2h]")
@click.option("--until", metavar="TIME", help="Until when instead, like 2026-01-05T08:00:00Z.")
@click.option("--tool", help="Of this tool alone.")
@click.option("--region", help="Of this region alone.")
@click.option("--severity", help="Of this severity alone.")
@click.option("--by", "author", help="Who mutes it.")
@_placed
@with_write_token
def mute(
    alert: str,
    reason: str,
    length: float | None,
    until: str | None,
    tool: str | None,
    region: str | None,
    severity: str | None,
    author: str | None,
    data: Path | None,
    collector: str | None,
    token: str | None,
    token_file: str | None,
) -> None:
    """Send no notifications of ALERT for a while.

    It goes on being evaluated and shown, as muted. When the mute ends and the alert still fires,
    a notification says so.
    """
    from fuseboard_alerts.mutes import MuteError, draft

    now = datetime.now(UTC)
    try:
        wanted = draft(alert, reason, _end(length, until, now), now, tool=tool, region=region,
                       severity=severity, author=author)  # fmt: skip
        with _book(data, collector, token_file or token) as book:
            book.add(wanted)
    except MuteError as error:
        raise CommandError(f"not muted: {error}", Exit.USAGE) from error
    click.echo(_line(wanted))


@click.command()
@click.argument("mute_id", metavar="ID")
@click.option("--by", "author", help="Who unmutes it.")
@_placed
@with_write_token
def unmute(
    mute_id: str,
    author: str | None,
    data: Path | None,
    collector: str | None,
    token: str | None,
    token_file: str | None,
) -> None:
    """End the mute ID, as `mutes` lists it; an alert that fires is told at once."""
    with _book(data, collector, token_file or token) as book:
        if not book.end(mute_id, author):
            raise CommandError(f"there is no mute {mute_id[:64]!r}; see `mutes`")
    click.echo(f"not muted any more: {mute_id}")


@click.command()
@_placed
@with_read_token
def mutes(
    data: Path | None, collector: str | None, read_token: str | None, read_token_file: str | None
) -> None:
    """List the mutes in force, the next to end first."""
    from fuseboard_alerts.mutes import load
    from fuseboard_collector.store import open_at_rest
    from fuseboard_server.operating import data_file, explained, running_server

    folder = resolve_data(data)
    with explained("read the mutes"):
        server = running_server(collector, folder, read_token_file or read_token)
        if server is not None:
            found = load(server, datetime.now(UTC))
        else:
            resting = open_at_rest(data_file(folder))
            try:
                found = load(resting, datetime.now(UTC))
            finally:
                resting.close()
    for one in found:
        click.echo(_line(one))
    if not found:
        click.echo("no alert is muted", err=True)


@contextmanager
def _book(data: Path | None, collector: str | None, token: str | None) -> Iterator[MuteBook]:
    """Yield where mutes are written: a running server, or the file of a folder without one."""
    from fuseboard_alerts.mute_book import RemoteMutes, StoreMutes
    from fuseboard_collector.store import open_store
    from fuseboard_server.operating import data_file, explained, running_server

    if collector is not None and data is not None:
        raise CommandError("give --collector or --data, not both", Exit.USAGE)
    folder = resolve_data(data)
    with explained("write the mute"):
        server = running_server(collector, folder, token)
        if server is not None:
            yield RemoteMutes(server.store_id, token)
            return
        store = open_store(data_file(folder), retention_days=None)
        try:
            yield StoreMutes(store)
        finally:
            store.close()


def _end(length: float | None, until: str | None, now: datetime) -> datetime:
    if until is None:
        return now + timedelta(seconds=DEFAULT_SECONDS if length is None else length)
    if length is not None:
        raise CommandError("give --for or --until, not both", Exit.USAGE)
    try:
        return datetime.fromisoformat(until)
    except ValueError:
        words = f"--until {until[:40]!r} is no moment in time, like 2026-01-05T08:00:00Z"
        raise CommandError(words, Exit.USAGE) from None


def _line(one: Mute) -> str:
    """Return a mute in one line; nothing in its words may move the cursor."""
    ends = one.ends.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    parts: list[Any] = [one.id, one.alert, one.severity or "any severity", one.tool or "any tool",
                        one.region or "any region", f"until {ends}"]  # fmt: skip
    if one.author:
        parts.append(f"by {one.author}")
    text = "  ".join([*parts, one.reason])
    return "".join(c if c.isprintable() else " " for c in text)
