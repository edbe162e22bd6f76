"""``fuseboard retention``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fuseboard_server.commands.options import (
    DATA_HELP,
    FOLDER,
    HttpUrl,
    Retention,
    Size,
    resolve_data,
)
from fuseboard_server.commands.tokens import read_token as with_read_token
from fuseboard_server.exits import CommandError, Exit


@click.command()
@click.option("--data", type=FOLDER, help=DATA_HELP)
@click.option("--collector", type=HttpUrl(), help="Address of a running server, for its data.")
@with_read_token
@click.option(
    "--retention",
    "days",
    type=Retention(),
    default=None,
    help="Remove what is older  [default: as the server does; 30d without one]",
)
@click.option("--max-size", type=Size(), help="Remove the oldest until the store takes this much.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.pass_context
def retention(
    ctx: click.Context,
    data: Path | None,
    collector: str | None,
    read_token: str | None,
    read_token_file: str | None,
    days: float | None,
    max_size: int | None,
    dry_run: bool,
) -> None:
    """Remove what has expired now, or say what would go.

    `fuseboard serve` does so by itself, within the hour. The file does not shrink at once: what
    is free in it takes the next calls; `fuseboard store compact` gives it back to the disk.
    """
    if collector is not None and data is not None:
        raise CommandError("give --collector or --data, not both", Exit.USAGE)
    from fuseboard_collector.operations import RETENTION_PATH
    from fuseboard_server.operating import ask, explained, running_server

    wanted: dict[str, object] = {"dry_run": dry_run}
    if ctx.get_parameter_source("days") is click.core.ParameterSource.COMMANDLINE:
        wanted["days"] = days
    if max_size is not None:
        wanted["max_bytes"] = max_size
    folder = resolve_data(data)
    with explained("apply retention"):
        server = running_server(collector, folder, read_token_file or read_token)
        if server is not None:
            plan = ask(server, RETENTION_PATH, wanted)
        else:
            plan = _at_rest(folder, wanted)
    click.echo(_words(plan, dry_run))


def _at_rest(folder: Path, wanted: dict[str, object]) -> dict[str, Any]:
    from fuseboard_collector.operations import keep_of, plan_as_json
    from fuseboard_collector.store import open_at_rest, open_store
    from fuseboard_collector.store.retention import Keep
    from fuseboard_server.operating import data_file

    path = data_file(folder)
    keep = keep_of(Keep(), wanted)
    if wanted["dry_run"]:
        resting = open_at_rest(path)
        try:
            return plan_as_json(resting.expired(keep))
        finally:
            resting.close()
    store = open_store(path, retention_days=None)
    try:
        return plan_as_json(store.apply_retention(keep))
    finally:
        store.close()


def _words(plan: dict[str, Any], dry_run: bool) -> str:
    if not plan["rows"]:
        return "nothing has expired"
    verb = "would go" if dry_run else "removed"
    reason = "too old" if plan["why"] == "age" else "the store takes too much room"
    return f"{plan['rows']} rows that came before {plan['before']}: {verb} ({reason})"
