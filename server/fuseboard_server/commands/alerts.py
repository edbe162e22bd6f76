"""``fuseboard alerts``."""

from __future__ import annotations

from pathlib import Path

import click

from fuseboard_server.commands.groups import Group
from fuseboard_server.commands.muting import mute, mutes, unmute
from fuseboard_server.exits import CommandError, writing_to

FILE = click.Path(path_type=Path, dir_okay=False)
RUNBOOKS = click.option(
    "--runbook-base", metavar="URL", help="Address of the folder with your copy of the runbooks."
)


@click.group(cls=Group)
def alerts() -> None:
    """Render or check the alert rules for Prometheus; mute alerts."""


@alerts.command()
@click.option("--output", "-o", type=FILE, help="File to write  [default: standard output]")
@RUNBOOKS
def render(output: Path | None, runbook_base: str | None) -> None:
    """Write the alert rules as a Prometheus rules file."""
    from fuseboard_alerts.render import render_prometheus

    text = render_prometheus(runbook_base) if runbook_base else render_prometheus()
    if output is None:
        click.echo(text, nl=False)
        return
    with writing_to(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    click.echo(f"written: {output}", err=True)


@alerts.command()
@click.argument("file", type=FILE)
@RUNBOOKS
def check(file: Path, runbook_base: str | None) -> None:
    """Tell whether FILE is what `render` would write; show the difference if it is not."""
    from fuseboard_alerts import render as rendering

    found = rendering.check(file, runbook_base) if runbook_base else rendering.check(file)
    if found:
        raise CommandError("the rules differ from this version's:\n" + "\n".join(found))
    click.echo(f"{file} is up to date")


for _command in (mute, unmute, mutes):
    alerts.add_command(_command)
