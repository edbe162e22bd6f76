"""The command line: one group; each command lives in a file of :mod:`commands`."""

from __future__ import annotations

import importlib
from importlib.metadata import version

import click

from fuseboard_server.commands import COMMANDS

EPILOG = """\b
Exit codes:
  0  done
  1  failed; the message says why
  2  wrong usage, or a port is in use
  3  the data file is in use by another process
  4  the data file is missing, damaged or of another version
  5  a package of the command's extra is not installed

Start with `fuseboard demo`, or with `fuseboard serve` and an agent of your own.
"""


class LazyGroup(click.Group):
    """A group that imports a command when it is used, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click calls it by name)
        """Name the commands in the order of a newcomer's use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click calls it by name)
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"fuseboard_server.commands.{COMMANDS[cmd_name][0]}")
        command = getattr(module, COMMANDS[cmd_name][0])
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click calls it by name)
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("fuseboard"), "-V", "--version", prog_name="fuseboard")
def root() -> None:
    """The fuse board for AI agents' tool calls."""


def run() -> None:
    """Run the command line of this process."""
    root(prog_name="fuseboard")
