"""``fuseboard dashboard``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseboard_server.commands.behind_proxy import behind_proxy
from fuseboard_server.commands.logins import login as with_login
from fuseboard_server.commands.logins import login_of
from fuseboard_server.commands.objectives import read as read_objectives
from fuseboard_server.commands.objectives import with_objectives
from fuseboard_server.commands.options import PORT, HttpUrl
from fuseboard_server.commands.tokens import read_token as with_read_token
from fuseboard_server.commands.tokens import write_token as with_write_token
from fuseboard_server.exposure import Doors, check_exposure
from fuseboard_server.settings import DEFAULT_HOST, DEFAULT_UI_PORT

if TYPE_CHECKING:
    from fuseboard_server.login.oidc import Oidc
    from fuseboard_server.login.trusted_header import Network
    from fuseboard_server.public import PublicAddress


@click.command()
@click.option(
    "--collector",
    type=HttpUrl(),
    required=True,
    help="Address of the server whose data to show, for example http://10.0.0.7:4318.",
)
@with_read_token
@with_write_token
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Address to listen on.")
@click.option(
    "--ui-port", type=PORT, default=DEFAULT_UI_PORT, show_default=True, help="Port; 0: any."
)
@with_objectives
@behind_proxy
@with_login
@click.option("--insecure", is_flag=True, help="Listen beyond loopback although there is no login.")
def dashboard(
    collector: str,
    read_token: str | None,
    read_token_file: str | None,
    token: str | None,
    token_file: str | None,
    host: str,
    ui_port: int,
    ui_url: PublicAddress | None,
    objectives: Path | None,
    allow_hosts: tuple[str, ...],
    trust_user_header: str | None,
    trusted_proxies: tuple[Network, ...],
    oidc_config: Oidc | None,
    insecure: bool,
) -> None:
    """Show the dashboard of a collector that runs elsewhere, in a process of its own.

    It reads over HTTP; with --token it can mute alerts there. Alerts are those that the collector
    evaluates. While the collector is away the pages say so.
    """
    login = login_of(trust_user_header, trusted_proxies, oidc_config)
    doors = Doors(DEFAULT_HOST, host, has_login=login is not None, ui_flag="--host")
    check_exposure(doors, insecure)
    from fuseboard_server.remote_dashboard import DashboardSettings, run

    run(
        DashboardSettings(
            collector=collector,
            token=read_token_file or read_token,
            write_token=token_file or token,
            host=host,
            port=ui_port,
            ui_url=ui_url,
            allow_hosts=allow_hosts,
            objectives=read_objectives(objectives),
            login=login,
        )
    )
