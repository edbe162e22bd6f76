"""``fuseboard incident``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseboard_server.commands.options import (
    HttpUrl,
    one_store,
    read_from,
)
from fuseboard_server.exits import CommandError, writing_to

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address

FORMATS = ("markdown",)


class Moment(click.ParamType[datetime]):
    """A moment such as ``2026-01-05T12:00:00Z``; UTC where no offset is given."""

    name = "moment"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Parse, or fail with an example."""
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no moment; write it like 2026-01-05T12:00:00Z", param, ctx)


@click.command()
@click.option("--from", "since", type=Moment(), required=True, help="Begin, in UTC or with offset.")
@click.option("--to", "until", type=Moment(), required=True, help="End, at most 30 days later.")
@click.option("--tool", "tools", multiple=True, help="Only this tool. May be repeated.")
@click.option("--region", "regions", multiple=True, help="Only this region. May be repeated.")
@click.option(
    "--dashboard", type=HttpUrl(), help="Address of the dashboard, for links to the calls."
)
@read_from
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="markdown",
    show_default=True,
    help="How to write it.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write  [default: standard output]",
)
def incident(
    since: datetime,
    until: datetime,
    tools: tuple[str, ...],
    regions: tuple[str, ...],
    dashboard: str | None,
    collector: str | None,
    data: Path | None,
    store: Address | None,
    read_token: str | None,
    read_token_file: str | None,
    form: str,  # noqa: ARG001 (there is one)
    output: Path | None,
) -> None:
    """Write what happened in a window: alerts, breakers, failures, processes, what changed.

    The text is that of the dashboard's page Incident. Where it reads from: as `fuseboard export`.
    """
    store = one_store(collector, data, store)
    _require_window(since, until)
    from fuseboard_collector.errors import StoreError
    from fuseboard_server.reading import source

    folder = data.expanduser().absolute() if data is not None else None
    with source(collector, folder, store, read_token_file or read_token) as found:
        from fuseboard_dashboard.filters import Filters
        from fuseboard_dashboard.incidents.report import incident as gathered
        from fuseboard_dashboard.incidents.report import to_markdown
        from fuseboard_dashboard.source import Source
        from fuseboard_dashboard.view import View
        from fuseboard_dashboard.windows import Window

        filters = Filters(since=since, to=until, tools=tools, regions=regions)
        view = View(Source(found.reader), filters, Window(since, until), UTC, "UTC")
        try:
            text = to_markdown(gathered(view), UTC, "UTC", dashboard or "")
        except StoreError as error:
            raise CommandError(f"can't read the incident from {found.place}: {error}") from error
    with writing_to(output or "standard output"):
        if output is None:
            click.echo(text, nl=False)
        else:
            output.write_text(text, encoding="utf-8")


def _require_window(since: datetime, until: datetime) -> None:
    from fuseboard_dashboard.windows import LONGEST, SHORTEST

    if until - since < SHORTEST:
        raise click.UsageError(
            f"--from ({since.isoformat()}) must be earlier than --to ({until.isoformat()}), by a "
            "second or more"
        )
    if until - since > LONGEST:
        days = (until - since) / timedelta(days=1)
        raise click.UsageError(
            f"the window is {days:.1f} days long; a report is about {LONGEST.days} at most"
        )
