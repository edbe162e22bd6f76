"""The options of a dashboard that is reached through a reverse proxy."""

from __future__ import annotations

from typing import Any

import click

from fuseboard_server.public import EXAMPLE, PublicAddress, parse


class UiUrl(click.ParamType[PublicAddress]):
    """The dashboard's address as people open it."""

    name = "url"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> PublicAddress:
        """Parse, or fail with an example."""
        if isinstance(value, PublicAddress):
            return value
        try:
            return parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def behind_proxy(command: Any) -> Any:
    """Add the options to a command."""
    allow_host = click.option(
        "--allow-host",
        "allow_hosts",
        multiple=True,
        help="Answer to this Host name too, for example a reverse proxy's. May be repeated.",
    )
    ui_url = click.option(
        "--ui-url",
        type=UiUrl(),
        help=f"The dashboard's address as people open it through a reverse proxy, like {EXAMPLE}: "
        "its pages are below that path, its host is answered to, alerts link there.",
    )
    return ui_url(allow_host(command))
