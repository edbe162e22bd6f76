"""The options for tokens: given as such, in a file, or in the environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from fuseboard_collector.tokens import Token
from fuseboard_server.settings import ENV_READ_TOKEN, ENV_TOKEN

MAX_TOKEN_FILE = 4096


class TokenText(click.ParamType[str]):
    """A token as it is sent in a header."""

    name = "token"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check that it can be sent; never repeat it in a message."""
        text = str(value)
        try:
            Token(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return text


class TokenFile(click.ParamType[str]):
    """A file with a token in it; converted to the token."""

    name = "file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read the file, without white space at its ends."""
        path = Path(str(value)).expanduser()
        try:
            with path.open() as file:
                text = file.read(MAX_TOKEN_FILE).strip()
            Token(text)
        except OSError as error:
            self.fail(f"can't read {path}: {error.strerror}", param, ctx)
        except ValueError as error:
            self.fail(f"{path}: {error}", param, ctx)
        return text


def _pair(flag: str, variable: str, purpose: str) -> Callable[[Any], Any]:
    name = flag.removeprefix("--").replace("-", "_")

    def decorate(command: Any) -> Any:
        direct = click.option(flag, name, type=TokenText(), envvar=variable, show_envvar=True,
                              help=purpose)  # fmt: skip
        in_file = click.option(
            f"{flag}-file", f"{name}_file", type=TokenFile(),
            help=f"Read it from a file: {flag} can be seen in the list of processes.",
        )  # fmt: skip
        return direct(in_file(command))

    return decorate


ingest_token = _pair("--token", ENV_TOKEN, "Token that senders of telemetry need.")
write_token = _pair("--token", ENV_TOKEN, "The collector's token for sending, to mute alerts with.")
read_token = _pair("--read-token", ENV_READ_TOKEN, "Token that readers of the data need.")
