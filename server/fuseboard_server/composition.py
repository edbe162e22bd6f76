"""Where the parts meet: store, receiver, read API, alerts and dashboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from fuseboard_server.below_path import BelowPath
from fuseboard_server.dispatch import AsgiApp, PortDispatcher
from fuseboard_server.hosts import HostAllowList
from fuseboard_server.login.oidc import Oidc
from fuseboard_server.presence import Presence
from fuseboard_server.public import Front, names
from fuseboard_server.settings import ServeSettings
from fuseboard_server.sockets import is_loopback

if TYPE_CHECKING:
    from fuseboard_alerts.evaluator import Evaluator
    from fuseboard_collector.receiver import Intake
    from fuseboard_collector.store import AnyStore


NOT_FOUND = 404


def build_evaluator(settings: ServeSettings, store: AnyStore, here: Presence) -> Evaluator:
    """Return the alert evaluator of a store with its notifiers; it is not started."""
    from fuseboard_alerts.evaluator import Evaluator
    from fuseboard_alerts.notifiers import Webhook

    receivers = [Webhook(address) for address in dict.fromkeys(settings.webhooks)]
    return Evaluator(
        store, receivers, time_scale=settings.alert_time_scale, external_url=here.address
    )


def build_app(
    settings: ServeSettings,
    store: AnyStore,
    here: Presence,
    intake: Intake,
    collector_port: int,
    lifespan: Callable[[Any], Any],
) -> AsgiApp:
    """Return the whole ASGI application of ``fuseboard serve``."""
    own = (settings.host, settings.ui_host)
    # Beyond loopback on either port, addresses are answered to; they can't be rebound.
    widest = next((host for host in own if not is_loopback(host)), settings.host)
    hosts = HostAllowList(widest, (*own, *names(settings.ui_url, settings.allow_hosts)))
    collector = build_collector(settings, store, here, intake)
    dashboard = build_dashboard(settings, store, here, lifespan)
    return PortDispatcher(dashboard, collector, collector_port, hosts)


def build_collector(
    settings: ServeSettings, store: AnyStore, here: Presence, intake: Intake
) -> Starlette:
    """Return what answers on the OTLP port: receiver, read API and health."""
    from fuseboard_alerts import mute_routes
    from fuseboard_collector import api, operations, receiver
    from fuseboard_collector.store import Store
    from fuseboard_collector.tokens import Token

    hint = f"nothing here; the dashboard is at {here.address}"
    # No route for the rest: it would hide that a path exists for another method.
    return Starlette(
        routes=[
            *receiver.routes(store, intake=intake, token=Token(settings.token)),
            *api.routes(
                store,
                token=Token(settings.read_token),
                about={
                    "alert_time_scale": settings.alert_time_scale,
                    "demo": settings.demo,
                    "takes_mutes": "with a token" if settings.token else "from here",
                },
                is_stopping=lambda: intake.is_stopping,
            ),
            *mute_routes.routes(store, token=Token(settings.token)),
            *(
                operations.routes(store, token=Token(settings.read_token))
                if isinstance(store, Store)
                else ()
            ),
        ],
        exception_handlers={NOT_FOUND: _nothing_here(hint)},
    )


def build_dashboard(
    settings: ServeSettings, store: AnyStore, here: Presence, lifespan: Callable[[Any], Any]
) -> AsgiApp:
    """Return what answers on the dashboard's port: Streamlit's app and health."""
    from fuseboard_alerts.mute_book import StoreMutes
    from fuseboard_collector import api
    from fuseboard_dashboard import source
    from fuseboard_dashboard.objectives import ObjectiveBook

    front = Front(here.dashboard, settings.ui_url, settings.login)
    source.configure(
        source.Source(
            reader=store,
            alert_time_scale=settings.alert_time_scale,
            otlp_endpoint=here.collector,
            demo=settings.demo,
            objectives=settings.objectives or ObjectiveBook(),
            has_login=front.login is not None,
            can_log_out=front.is_ours_to_end,
            mutes=StoreMutes(store),
        )
    )
    hint = f"this is the dashboard's port; OTLP and the read API are at {here.collector}"
    health = [route for route in api.routes(store) if route.path in {"/healthz", "/readyz"}]
    return build_pages(hint, health, lifespan, front)


def build_pages(
    hint: str, health: list[Route], lifespan: Callable[[Any], Any], front: Front
) -> AsgiApp:
    """Return Streamlit's app behind its login, with what else is asked for on its port.

    Args:
        hint: What a client is told that takes the port for the collector's.
        health: Routes of health checks.
        lifespan: What runs as long as the app.
        front: How people reach it.
    """
    import streamlit as st

    from fuseboard_dashboard.theme import streamlit_options
    from fuseboard_server.login.guarding import guarded

    _configure_streamlit({**streamlit_options(), **SERVER_OPTIONS, **front_options(front)})
    path = front.path
    wrong_port = _not_here(hint)
    app: AsgiApp = st.App(
        _dashboard_script(),
        secrets=front.login.secrets(front.address) if isinstance(front.login, Oidc) else None,
        lifespan=lifespan,
        routes=[
            *(Route(f"{path}{route.path}", route.endpoint, methods=["GET"]) for route in health),
            Route(f"{path}/v1/{{path:path}}", wrong_port, methods=["GET", "POST"]),
            Route(f"{path}/api/{{path:path}}", wrong_port, methods=["GET", "POST"]),
        ],
    )
    return BelowPath(guarded(app, front.login, front.address), path)


SERVER_OPTIONS: dict[str, object] = {
    "server.headless": True,
    "server.enableStaticServing": False,
    "logger.level": "warning",
}
"""Streamlit settings that are the server's business; looks are the theme's."""


def front_options(front: Front) -> dict[str, object]:
    """Return the Streamlit settings of how people reach the dashboard.

    The origin of a reverse proxy is let in by name: one that says its own Host to us would make
    every websocket look like another site's.
    """
    found: dict[str, object] = {}
    if front.public is not None:
        found["server.baseUrlPath"] = front.public.path
        found["server.corsAllowedOrigins"] = [front.public.origin]
    if isinstance(front.login, Oidc):
        # For the session that lasts while somebody is at the provider: over a restart, too.
        found["server.cookieSecret"] = front.login.cookie_secret
    return found


def _dashboard_script() -> Path:
    import fuseboard_dashboard

    return Path(str(fuseboard_dashboard.__file__)).with_name("app.py")


def _configure_streamlit(options: dict[str, object]) -> None:
    from streamlit.web import bootstrap

    bootstrap.load_config_options({name.replace(".", "_"): v for name, v in options.items()})


def _not_here(message: str) -> Callable[[Request], Any]:
    async def answer(_: Request) -> JSONResponse:
        return JSONResponse({"error": message, "kind": "NotHere"}, status_code=NOT_FOUND)

    return answer


def _nothing_here(message: str) -> Callable[[Request, Exception], Any]:
    answer = _not_here(message)

    async def handle(request: Request, _: Exception) -> JSONResponse:
        found: JSONResponse = await answer(request)
        return found

    return handle
