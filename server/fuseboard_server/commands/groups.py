"""A group of commands of which each is listed with its whole first sentence."""

from __future__ import annotations

import click

MAX_SENTENCE = 200


class Group(click.Group):
    """click's own, without the dots: click cuts what is longer than the rest of the line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands."""
        names = self.list_commands(ctx)
        commands = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(MAX_SENTENCE))
                    for name, command in commands
                    if command is not None
                ]
            )
