"""The option that names a file with objectives of tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.settings import ENV_OBJECTIVES

if TYPE_CHECKING:
    from fuseboard_dashboard.objectives import ObjectiveBook

with_objectives = click.option(
    "--objectives",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar=ENV_OBJECTIVES,
    show_envvar=True,
    help="File whose table [objectives] says what the page SLOs asks of tools.",
)


def read(path: Path | None) -> ObjectiveBook | None:
    """Return the objectives of a file; say on standard error what in it is hardly meant.

    Raises:
        CommandError: If it can't be read or says something that is not legal.
    """
    if path is None:
        return None
    from fuseboard.errors import ConfigurationError
    from fuseboard_dashboard.objective_file import read_objectives

    try:
        book, doubts = read_objectives(path.expanduser())
    except ConfigurationError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    for words in doubts:
        click.echo(f"Warning: {words}", err=True)
    return book
