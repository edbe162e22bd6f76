"""``fuseboard dashboard`` put together: the pages alone, reading a collector over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.login.checks import check_front
from fuseboard_server.public import Front
from fuseboard_server.running import Server, configured, stopping_quietly
from fuseboard_server.sockets import bind, port_of, url

if TYPE_CHECKING:
    from fuseboard_alerts.mute_book import MuteBook
    from fuseboard_collector.api import RemoteReader
    from fuseboard_dashboard.objectives import ObjectiveBook
    from fuseboard_server.dispatch import AsgiApp
    from fuseboard_server.login import Login
    from fuseboard_server.public import PublicAddress

ANSWER_SECONDS = 20.0
"""How long a page waits for the collector; a viewer gives up sooner than an export."""
ASK_AGAIN_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 60.0
UNREADABLE = "the collector can't be read; the server's log says why"
"""Health checks are open to strangers, who are told no addresses."""
logger = logging.getLogger("fuseboard.dashboard")


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """What ``fuseboard dashboard`` was asked to do.

    Attributes:
        collector: Base address of the collector.
        token: Its token for reading; None: it needs none.
        write_token: Its token for sending, with which alerts can be muted; None: without.
        port: 0 for any free one.
        ui_url: The address as people open it; None: where it listens.
        allow_hosts: Further names that are answered to.
        objectives: What is asked of tools; None: the defaults.
        login: How people log in; None: nobody has to.
    """

    collector: str
    token: str | None = field(default=None, repr=False)
    write_token: str | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8501
    ui_url: PublicAddress | None = None
    allow_hosts: tuple[str, ...] = ()
    objectives: ObjectiveBook | None = None
    login: Login | None = None


def run(settings: DashboardSettings) -> None:
    """Show the pages until SIGINT, SIGTERM or the end of the terminal.

    Raises:
        CommandError: If the port can't be had.
    """
    with stopping_quietly(), bind(settings.host, settings.port, "--ui-port") as listener:
        from fuseboard_collector.api import RemoteReader

        reader = RemoteReader(settings.collector, ANSWER_SECONDS, settings.token)
        front = Front(url(settings.host, port_of(listener)), settings.ui_url, settings.login)
        check_front(front, settings.host)
        app = _build(settings, reader, front)

        def is_ready() -> None:
            click.echo("\n".join([
                "fuseboard dashboard is ready", *front.lines,
                f"  Reads from {settings.collector}", "Ctrl-C stops it.",
            ]))  # fmt: skip

        try:
            Server(configured(app), is_ready).run(sockets=[listener])
        except OSError as error:
            raise CommandError(f"the port was taken meanwhile: {error}", Exit.USAGE) from error
    with suppress(OSError):  # the terminal may be what ended
        click.echo("fuseboard dashboard stopped.")


def _build(settings: DashboardSettings, reader: RemoteReader, front: Front) -> AsgiApp:
    from fuseboard_server.composition import build_pages
    from fuseboard_server.dispatch import PortDispatcher
    from fuseboard_server.hosts import HostAllowList
    from fuseboard_server.public import names

    about = About(reader, settings.collector, front, settings.objectives, settings.write_token)
    about.tell()
    hint = f"this is a dashboard; OTLP and the read API are at {settings.collector}"
    pages = build_pages(hint, _health(reader), about.lifespan, front)
    hosts = HostAllowList(settings.host, names(settings.ui_url, settings.allow_hosts))
    return PortDispatcher(pages, pages, settings.port, hosts)


class About:
    """Keeps what the pages say of the collector as the collector says it.

    Args:
        reader: Reads from the collector.
        address: The collector's, shown where agents are told what to send to.
        front: How people reach the pages.
        objectives: What is asked of tools; None: the defaults.
        write_token: The collector's token for sending, to mute alerts with.
    """

    def __init__(
        self,
        reader: RemoteReader,
        address: str,
        front: Front,
        objectives: ObjectiveBook | None = None,
        write_token: str | None = None,
    ) -> None:
        self._reader = reader
        self._address = address
        self._front = front
        self._objectives = objectives
        self._write_token = write_token

    def tell(self, found: dict[str, Any] | None = None) -> None:
        """Have the pages read from the collector.

        Args:
            found: What the collector says of itself; None: nothing so far.
        """
        from fuseboard_dashboard import source
        from fuseboard_dashboard.objectives import ObjectiveBook

        known = found or {}
        source.configure(
            source.Source(
                reader=self._reader,
                alert_time_scale=float(known.get("alert_time_scale", 1.0)),
                otlp_endpoint=self._address,
                demo=bool(known.get("demo", False)),
                objectives=self._objectives or ObjectiveBook(),
                has_login=self._front.login is not None,
                can_log_out=self._front.is_ours_to_end,
                mutes=self._mutes(known),
            )
        )

    def _mutes(self, known: dict[str, Any]) -> MuteBook | None:
        """Return where mutes are written; None where the collector would refuse them."""
        from fuseboard_alerts.mute_book import RemoteMutes

        if self._write_token is None and known.get("takes_mutes") != "from here":
            return None
        return RemoteMutes(self._address, self._write_token, ANSWER_SECONDS)

    async def _follow(self) -> None:
        from fuseboard_collector.errors import StoreError

        while True:
            try:
                self.tell(await asyncio.to_thread(self._reader.describe))
                pause = LOOK_AGAIN_SECONDS
            except (StoreError, ValueError, TypeError):
                pause = ASK_AGAIN_SECONDS  # the pages say what is wrong
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        """Ask the collector again and again while the pages are served."""
        following = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            following.cancel()


def _health(reader: RemoteReader) -> list[Route]:
    from fuseboard_collector.errors import StoreError

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    told = ""

    async def readyz(_: Request) -> Response:
        nonlocal told
        try:
            await asyncio.to_thread(reader.describe)
        except StoreError as error:
            # Health checks come every few seconds, and the same words help nobody twice.
            if str(error) != told:
                told = str(error)
                logger.warning("not ready: %s", told)
            return JSONResponse({"status": "not ready", "reason": UNREADABLE}, 503)
        told = ""
        return JSONResponse({"status": "ready"})

    routes: dict[str, Callable[[Request], Any]] = {"/healthz": healthz, "/readyz": readyz}
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()]
