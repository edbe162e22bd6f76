"""Exit codes of the command line, and the one way in which a command fails."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

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


@contextmanager
def writing_to(place: Path | str) -> Iterator[None]:
    """Turn the system's refusal to write into a message.

    Args:
        place: What is written to.
    """
    try:
        yield
    except OSError as error:
        incomplete = " What is there is incomplete." if error.errno == errno.ENOSPC else ""
        raise CommandError(
            f"can't write to {place}: {error.strerror or error}.{incomplete} "
            "Name another place with --output."
        ) from error
