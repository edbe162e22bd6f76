"""``fuseboard serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseboard_server.commands.behind_proxy import behind_proxy
from fuseboard_server.commands.logins import login as with_login
from fuseboard_server.commands.logins import login_of
from fuseboard_server.commands.objectives import read as read_objectives
from fuseboard_server.commands.objectives import with_objectives
from fuseboard_server.commands.options import (
    DATA_HELP,
    FOLDER,
    PORT,
    STORE,
    STORE_HELP,
    HttpUrl,
    PortOrOff,
    Retention,
    Size,
    require_different,
    resolve_data,
)
from fuseboard_server.commands.tokens import ingest_token, read_token
from fuseboard_server.exposure import Doors, check_exposure
from fuseboard_server.settings import (
    DEFAULT_HOST,
    DEFAULT_OTLP_GRPC_PORT,
    DEFAULT_OTLP_HTTP_PORT,
    DEFAULT_UI_PORT,
    ENV_STORE,
    ServeSettings,
)

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address
    from fuseboard_server.login.oidc import Oidc
    from fuseboard_server.login.trusted_header import Network
    from fuseboard_server.public import PublicAddress


@click.command()
@click.option("--data", type=FOLDER, help=DATA_HELP)
@click.option(
    "--store",
    type=STORE,
    envvar=ENV_STORE,
    show_envvar=True,
    help=f"{STORE_HELP} Stores there instead of in a data file.",
)
@click.option(
    "--host",
    default=DEFAULT_HOST,
    show_default=True,
    help="Address that OTLP and the read API listen on.",
)
@click.option("--ui-host", help="Address that the dashboard listens on  [default: that of --host]")
@ingest_token
@read_token
@click.option(
    "--ui-port", type=PORT, default=DEFAULT_UI_PORT, show_default=True, help="Dashboard; 0: any."
)
@click.option(
    "--otlp-http-port",
    type=PORT,
    default=DEFAULT_OTLP_HTTP_PORT,
    show_default=True,
    help="OTLP/HTTP and the read API; 0: any.",
)
@click.option(
    "--otlp-grpc-port",
    type=PortOrOff(),
    default=DEFAULT_OTLP_GRPC_PORT,
    show_default=True,
    help="OTLP/gRPC; 0: any, off: none.",
)
@click.option(
    "--retention",
    type=Retention(),
    default="30d",
    show_default=True,
    help="Remove what is older, for example 12h, 30d, 8w or forever.",
)
@click.option(
    "--max-size",
    type=Size(),
    help="Remove the oldest calls when the data file would take more, for example 20GB.",
)
@click.option(
    "--memory-limit",
    type=Size(),
    help="What the database engine may use, for example 2GB  [default: a quarter of the memory]",
)
@click.option(
    "--webhook",
    "webhooks",
    type=HttpUrl(),
    multiple=True,
    help="Post alert notifications there, in Alertmanager's shape. May be repeated.",
)
@click.option(
    "--alert-time-scale",
    type=click.FloatRange(min=0.001, max=1.0),
    default=1.0,
    show_default=True,
    help="Shrink every window and hold of the alerts by this factor, for demos.",
)
@click.option(
    "--no-alerts",
    is_flag=True,
    help="Leave the alerts to another server on the same database.",
)
@with_objectives
@behind_proxy
@with_login
@click.option(
    "--keep-arguments",
    is_flag=True,
    help="Store the arguments of calls that other instrumentation tells of, redacted.",
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Listen beyond loopback without tokens, or with a dashboard that asks for no login.",
)
@click.option("--demo", is_flag=True, hidden=True)
def serve(
    data: Path | None,
    store: Address | None,
    host: str,
    ui_host: str | None,
    token: str | None,
    token_file: str | None,
    read_token: str | None,
    read_token_file: str | None,
    ui_port: int,
    otlp_http_port: int,
    otlp_grpc_port: int | None,
    retention: float | None,
    max_size: int | None,
    memory_limit: int | None,
    webhooks: tuple[str, ...],
    alert_time_scale: float,
    no_alerts: bool,
    ui_url: PublicAddress | None,
    objectives: Path | None,
    allow_hosts: tuple[str, ...],
    trust_user_header: str | None,
    trusted_proxies: tuple[Network, ...],
    oidc_config: Oidc | None,
    keep_arguments: bool,
    insecure: bool,
    demo: bool,
) -> None:
    """Receive telemetry over OTLP, keep it, show the dashboard and raise alerts.

    One process does it all. It stops on Ctrl-C or SIGTERM after storing what it accepted.
    """
    login = login_of(trust_user_header, trusted_proxies, oidc_config)
    doors = Doors(
        host,
        ui_host or host,
        token_file or token,
        read_token_file or read_token,
        has_login=login is not None,
    )
    check_exposure(doors, insecure)
    if no_alerts and webhooks:
        raise click.UsageError(
            "--webhook has nothing to post with --no-alerts; give it to the server that raises them"
        )
    ports = {
        "--ui-port": ui_port,
        "--otlp-http-port": otlp_http_port,
        "--otlp-grpc-port": otlp_grpc_port,
    }
    require_different(ports)
    settings = ServeSettings(
        data=resolve_data(data),
        host=doors.host,
        ui_host=doors.ui_host,
        token=doors.token,
        read_token=doors.read_token,
        ui_port=ui_port,
        otlp_http_port=otlp_http_port,
        otlp_grpc_port=otlp_grpc_port,
        retention_days=retention,
        max_bytes=max_size,
        memory_bytes=memory_limit,
        webhooks=webhooks,
        alert_time_scale=alert_time_scale,
        raises_alerts=not no_alerts,
        ui_url=ui_url,
        objectives=read_objectives(objectives),
        allow_hosts=allow_hosts,
        login=login,
        keep_arguments=keep_arguments,
        demo=demo,
        store=store,
    )
    from fuseboard_server.serving import run

    run(settings)
