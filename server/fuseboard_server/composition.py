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
from fuseboard_server.presence import Presence
from fuseboard_server.public import PublicAddress, names
from fuseboard_server.settings import ServeSettings

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
    hosts = HostAllowList(
        settings.host, (settings.ui_host, *names(settings.ui_url, settings.allow_hosts))
    )
    collector = build_collector(settings, store, here, intake)
    dashboard = build_dashboard(settings, store, here, lifespan)
    return PortDispatcher(dashboard, collector, collector_port, hosts)


def build_collector(
    settings: ServeSettings, store: AnyStore, here: Presence, intake: Intake
) -> Starlette:
    """Return what answers on the OTLP port: receiver, read API and health."""
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
                about={"alert_time_scale": settings.alert_time_scale, "demo": settings.demo},
                is_stopping=lambda: intake.is_stopping,
            ),
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
    from fuseboard_collector import api
    from fuseboard_dashboard import source
    from fuseboard_dashboard.objectives import ObjectiveBook

    source.configure(
        source.Source(
            reader=store,
            alert_time_scale=settings.alert_time_scale,
            otlp_endpoint=here.collector,
            demo=settings.demo,
            objectives=settings.objectives or ObjectiveBook(),
        )
    )
    hint = f"this is the dashboard's port; OTLP and the read API are at {here.collector}"
    health = [route for route in api.routes(store) if route.path in {"/healthz", "/readyz"}]
    return build_pages(hint, health, lifespan, settings.ui_url)


def build_pages(
    hint: str,
    health: list[Route],
    lifespan: Callable[[Any], Any],
    public: PublicAddress | None = None,
) -> AsgiApp:
    """Return Streamlit's app, with what else is asked for on its port.

    Args:
        hint: What a client is told that takes the port for the collector's.
        health: Routes of health checks.
        lifespan: What runs as long as the app.
        public: The address as people open it; None: where it listens.
    """
    import streamlit as st

    from fuseboard_dashboard.theme import streamlit_options

    _configure_streamlit({**streamlit_options(), **SERVER_OPTIONS, **public_options(public)})
    path = public.path if public else ""
    wrong_port = _not_here(hint)
    app: AsgiApp = st.App(
        _dashboard_script(),
        lifespan=lifespan,
        routes=[
            *(Route(f"{path}{route.path}", route.endpoint, methods=["GET"]) for route in health),
            Route(f"{path}/v1/{{path:path}}", wrong_port, methods=["GET", "POST"]),
            Route(f"{path}/api/{{path:path}}", wrong_port, methods=["GET", "POST"]),
        ],
    )
    return BelowPath(app, path)


SERVER_OPTIONS: dict[str, object] = {
    "server.headless": True,
    "server.enableStaticServing": False,
    "logger.level": "warning",
}
"""Streamlit settings that are the server's business; looks are the theme's."""


def public_options(public: PublicAddress | None) -> dict[str, object]:
    """Return the Streamlit settings of an address that is a reverse proxy's.

    Its origin is let in by name: a proxy that says its own Host to us would make every websocket
    look like another site's.
    """
    if public is None:
        return {}
    return {"server.baseUrlPath": public.path, "server.corsAllowedOrigins": [public.origin]}


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
