"""``fuseboard demo``."""

from __future__ import annotations

from pathlib import Path

import click

from fuseboard_server.commands.options import FOLDER, PORT, Duration, require_different
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.settings import DEFAULT_OTLP_HTTP_PORT, DEFAULT_UI_PORT


@click.command()
@click.option(
    "--data", type=FOLDER, help="Data folder to fill and keep  [default: removed at the end]"
)
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
@click.option("--metrics-port", type=PORT, help="Let the agent offer /metrics there  [default: no]")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 40),
    default=4.0,
    show_default=True,
    help="Scenario seconds per second; 1 is the outage as it was written.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of every random choice.")
@click.option(
    "--alert-time-scale",
    type=click.FloatRange(0.001, 1.0),
    default=0.1,
    show_default=True,
    help="Factor on the alerts' windows and holds.",
)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Scenario file  [default: the shipped one]",
)
@click.option("--for", "duration", type=Duration(), help="End by itself after, for example, 90s.")
def demo(
    data: Path | None,
    ui_port: int,
    otlp_http_port: int,
    metrics_port: int | None,
    speed: float,
    seed: int,
    alert_time_scale: float,
    scenario: Path | None,
    duration: float | None,
) -> None:
    """Start a server, an agent that plans trips and the services it calls, which then fail.

    Nothing on the board is invented: the agent calls real HTTP servers and an MCP server on
    this machine through the shim. Ctrl-C stops everything.
    """
    require_different(
        {"--ui-port": ui_port, "--otlp-http-port": otlp_http_port, "--metrics-port": metrics_port}
    )
    _require_demo_packages()
    from fuseboard_server.demo.scenario import DEFAULT_SCENARIO, ScenarioError
    from fuseboard_server.demo.supervisor import DemoSettings, run

    settings = DemoSettings(
        data=data.expanduser().absolute() if data else None,
        ui_port=ui_port,
        otlp_http_port=otlp_http_port,
        metrics_port=metrics_port,
        speed=speed,
        seed=seed,
        alert_time_scale=alert_time_scale,
        scenario=scenario or DEFAULT_SCENARIO,
        duration=duration,
    )
    try:
        run(settings, click.echo)
    except ScenarioError as error:
        raise CommandError(str(error), Exit.USAGE) from error


def _require_demo_packages() -> None:
    import httpx
    import mcp

    _ = httpx, mcp
