"""Parameter types and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from fuseboard_server.commands.tokens import read_token
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.settings import (
    ENV_STORE,
    ENV_STORE_PASSWORD,
    SECONDS_PER_DAY,
    default_data_dir,
    parse_duration,
    parse_size,
)

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address

MAX_PORT = 65535
LEAST_SIZE = 256_000_000
"""Bytes; of a store and of the engine's memory: a checkpoint alone may take 64 MB."""


class Duration(click.ParamType[float]):
    """A duration such as ``1h``; converted to seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse, or fail with an example."""
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Retention(click.ParamType[float | None]):
    """A duration, or ``forever``; converted to days or None."""

    name = "duration|forever"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        """Parse into days."""
        if value == "forever":
            return None
        if isinstance(value, float):
            return value
        return Duration().convert(value, param, ctx) / SECONDS_PER_DAY


class Size(click.ParamType[int]):
    """A size such as ``20GB``; converted to bytes."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Parse, or fail with an example."""
        if isinstance(value, int):
            return value
        try:
            size = parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if size < LEAST_SIZE:
            self.fail(f"{value!r} is less than 256MB, the least that works", param, ctx)
        return size


class HttpUrl(click.ParamType[str]):
    """An http or https address."""

    name = "url"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check scheme and host, and remove a trailing slash."""
        text = str(value)
        try:
            parts = urlsplit(text)
            is_good = parts.scheme in {"http", "https"} and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_good = False
        if not is_good:
            self.fail(f"{text!r} is no address such as http://127.0.0.1:4318", param, ctx)
        return text.rstrip("/")


class Store(click.ParamType["Address"]):
    """The address of a ClickHouse database."""

    name = "url"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Address:
        """Parse; a password that the address lacks is taken from the environment."""
        from fuseboard_collector.errors import StoreError
        from fuseboard_collector.store.clickhouse.address import Address, parse

        if isinstance(value, Address):
            return value
        try:
            return parse(str(value), os.environ.get(ENV_STORE_PASSWORD))
        except StoreError as error:
            self.fail(str(error), param, ctx)


class Port(click.ParamType[int]):
    """A TCP port, 0 for any free one."""

    name = "port"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Parse and check the range."""
        text = str(value)
        # Not isdigit(), which takes digits that int() does not; nor int() alone: it takes "1_0".
        is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_PORT))
        if not is_number or int(text) > MAX_PORT:
            self.fail(
                f"{text!r} is no port; write a number from 1 to {MAX_PORT}, or 0 for any free one",
                param,
                ctx,
            )
        return int(text)


class PortOrOff(Port):
    """A TCP port, or ``off``; converted to None then."""

    name = "port|off"

    def convert(  # type: ignore[override]
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Parse and check the range."""
        return None if value == "off" else super().convert(value, param, ctx)


def require_different(ports: Mapping[str, int | None]) -> None:
    """Refuse one port for two purposes.

    Args:
        ports: Flag → port; 0 and None collide with nothing.
    """
    flags: dict[int, str] = {}
    for flag, port in ports.items():
        if not port:
            continue
        if port in flags:
            raise CommandError(
                f"{flags[port]} and {flag} are both {port}; they must differ.", Exit.USAGE
            )
        flags[port] = flag


def one_store(collector: str | None, data: Path | None, store: Address | None) -> Address | None:
    """Return the database that the running command means, if it means one.

    One that only the environment names counts where no other place is named.

    Raises:
        CommandError: If several places are named.
    """
    named = click.get_current_context().get_parameter_source("store")
    if named is ParameterSource.ENVIRONMENT and (collector is not None or data is not None):
        return None
    if sum(place is not None for place in (collector, data, store)) > 1:
        raise CommandError("give one of --collector, --data and --store, not several", Exit.USAGE)
    return store


def resolve_data(data: Path | None) -> Path:
    """Return the data folder that was asked for, or the default one."""
    return (data or default_data_dir()).expanduser().absolute()


PORT = Port()
STORE = Store()
STORE_HELP = "A ClickHouse database, like clickhouse://user@host:8123/fuseboard."
FOLDER = click.Path(path_type=Path, file_okay=False)
DATA_HELP = "Folder of the data file  [default: $FUSEBOARD_DATA, else ~/.local/share/fuseboard]"


def read_from(command: Any) -> Any:
    """Add the options that say whose data are read; :func:`one_store` takes them apart."""
    options: tuple[Callable[[Any], Any], ...] = (
        click.option("--collector", type=HttpUrl(),
                     help="Address of a running server, for its data."),
        click.option("--data", type=FOLDER,
                     help="Data folder, whether a server runs on it or not."),
        click.option("--store", type=STORE, envvar=ENV_STORE, show_envvar=True, help=STORE_HELP),
        read_token,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command
