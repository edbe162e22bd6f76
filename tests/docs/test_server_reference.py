"""The tables on the server say what its command line and its receiver do."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fuseboard_collector.receiver import body, intake, limits
from fuseboard_collector.receiver.body import Encoding
from fuseboard_server import connections, serving, settings
from fuseboard_server.commands.serve import serve

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
SERVER = PAGE[PAGE.index("## The server") :]


def table(first_header: str) -> dict[str, list[str]]:
    start = SERVER.index(f"| {first_header} |")
    lines = SERVER[start:].splitlines()[2:]
    end = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[:end]]
    return {first: rest for first, *rest in cells}


def test_every_option_of_serve_is_documented_with_its_default() -> None:
    said = {
        option: rest[0]
        for cell, rest in table("option").items()
        for option in re.findall(r"`(--[a-z-]+)`", cell)
    }
    options = {
        option.opts[0]: option.default
        for option in serve.params
        if isinstance(option, click.Option) and not option.hidden
    }
    assert said.keys() == options.keys()
    for name, default in options.items():
        if isinstance(default, str | int | float) and not isinstance(default, bool):
            assert said[name] == f"`{default}`", name


def test_every_variable_of_the_server_is_documented() -> None:
    for name in settings.SERVER_VARIABLES:
        assert f"| `{name}` |" in PAGE, name


def test_limits_are_those_of_the_code() -> None:
    mib = 1 << 20
    unpacked = intake.MAX_UNPACKED
    assert (
        f"{body.MAX_BODY // mib} MiB as it is sent; unpacked "
        f"{unpacked[Encoding.PROTOBUF] // mib} MiB of protobuf, "
        f"{unpacked[Encoding.JSON] // mib} MiB of JSON"
    ) in SERVER
    assert f"{body.BODY_SECONDS:g} s; for a request's head {connections.HEAD_SECONDS:g} s" in SERVER
    assert f"{intake.MAX_BYTES_IN_FLIGHT // mib} MiB" in SERVER
    assert f"{limits.MAX_RECORDS:,} spans or log records" in SERVER
    assert f"at most {serving.SHUTDOWN_SECONDS} s" in SERVER
