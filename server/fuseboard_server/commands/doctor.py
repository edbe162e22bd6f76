"""``fuseboard doctor``."""

from __future__ import annotations

from pathlib import Path

import click

from fuseboard_server.commands.options import DATA_HELP, FOLDER, HttpUrl, resolve_data
from fuseboard_server.exits import Exit

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option("--data", type=FOLDER, help=DATA_HELP)
@click.option("--collector", type=HttpUrl(), help="Address of the server that agents export to.")
@click.pass_context
def doctor(ctx: click.Context, data: Path | None, collector: str | None) -> None:
    """Check the set-up: each line is ok, warn or fail, and says what to do.

    Ends with exit code 1 if a check fails.
    """
    from fuseboard_server.doctor import Grade, Setup, default_collector, examine

    folder = resolve_data(data)
    findings = list(examine(Setup(folder, collector or default_collector(folder))))
    for finding in findings:
        grade = click.style(f"{finding.grade:<4}", fg=COLOURS[finding.grade])
        click.echo(f"{grade}  {finding.subject}: {finding.seen}")
        if finding.advice:
            click.echo(f"      → {finding.advice}")
    if any(finding.grade is Grade.FAIL for finding in findings):
        ctx.exit(Exit.FAILED)
