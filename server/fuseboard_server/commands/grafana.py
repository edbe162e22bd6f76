"""``fuseboard grafana``."""

from __future__ import annotations

from pathlib import Path

import click

from fuseboard_server.commands.groups import Group
from fuseboard_server.exits import writing_to


@click.group(cls=Group)
def grafana() -> None:
    """Render the Grafana boards."""


@grafana.command()
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("grafana/dashboards"),
    show_default=True,
    help="Folder to write to.",
)
def render(output: Path) -> None:
    """Write each board as a JSON file to import or provision."""
    from fuseboard_grafana.render import write_boards

    with writing_to(output):
        written = write_boards(output)
    for path in written:
        click.echo(f"written: {path}")
