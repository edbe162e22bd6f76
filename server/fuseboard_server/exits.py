"""Exit codes of the command line, and the one way in which a command fails."""

from __future__ import annotations

from enum import IntEnum

import click


class Exit(IntEnum):
    """What a command's exit code means; documented in ``fuseboard --help``."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DATA_IN_USE = 3
    DATA_UNUSABLE = 4
    MISSING_EXTRA = 5


class CommandError(click.ClickException):
    """A command can't go on; the message says why and what to do next.

    Attributes:
        exit_code: One of :class:`Exit`, or that of a child process.
    """

    def __init__(self, message: str, code: int = Exit.FAILED) -> None:
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]
