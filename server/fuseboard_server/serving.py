"""``fuseboard serve`` put together: one process, one store, one event loop, three ports."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvicorn

from fuseboard_server import garbage, presence
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.login.checks import check_front
from fuseboard_server.public import Front
from fuseboard_server.running import SHUTDOWN_SECONDS, Server, configured, stopping_quietly
from fuseboard_server.settings import DATA_FILE, ServeSettings
from fuseboard_server.sockets import Wanted, address_of, bind_all, port_of, url

if TYPE_CHECKING:
    from fuseboard_alerts.evaluator import Evaluator
    from fuseboard_collector.receiver import GrpcReceiver, Intake
    from fuseboard_collector.store import AnyStore
    from fuseboard_collector.tokens import Token


def run(settings: ServeSettings) -> None:
    """Serve until SIGINT, SIGTERM or the end of the terminal; return with everything stored.

    Raises:
        CommandError: If a port or the data file can't be had.
    """
    with stopping_quietly(), _bound(settings) as sockets:
        # Ports first: a second start by mistake must not touch the data.
        here = presence.Presence(
            pid=os.getpid(),
            dashboard=url(settings.ui_host, port_of(sockets.ui)),
            collector=url(settings.host, port_of(sockets.collector)),
            grpc="" if sockets.grpc is None else _shown(settings.host, port_of(sockets.grpc)),
            public="" if settings.ui_url is None else settings.ui_url.url,
            login="" if settings.login is None else settings.login.words,
        )
        check_front(_front(settings, here), settings.ui_host)
        with _opened_store(settings) as store:
            _serve(settings, store, here, sockets)
    with suppress(OSError):  # the terminal may be what ended
        click.echo("fuseboard stopped; everything received is stored.")


def _serve(
    settings: ServeSettings,
    store: AnyStore,
    here: presence.Presence,
    sockets: _Sockets,
) -> None:
    from fuseboard.clock import SystemClock
    from fuseboard_collector.receiver import Intake
    from fuseboard_collector.tokens import Token
    from fuseboard_server.composition import build_app, build_evaluator

    evaluator = build_evaluator(settings, store, here) if settings.raises_alerts else None
    intake = Intake(store, SystemClock(), keep_arguments=settings.keep_arguments)
    port = port_of(sockets.collector)
    app = build_app(settings, store, here, intake, port, _lifespan(evaluator))

    def is_ready() -> None:
        garbage.calm()
        presence.announce(settings.data, here)
        _print_welcome(settings, here)

    try:
        server = _CollectorServer(
            configured(app), intake, Token(settings.token), sockets.grpc, is_ready
        )
        server.run(sockets=[sockets.ui, sockets.collector])
    except OSError as error:
        # Between binding and listening another process took a port.
        raise CommandError(f"a port was taken meanwhile: {error}", Exit.USAGE) from error
    finally:
        presence.withdraw(settings.data)


class _CollectorServer(Server):
    """Serves gRPC beside HTTP."""

    def __init__(
        self,
        config: uvicorn.Config,
        intake: Intake,
        token: Token,
        grpc_socket: socket.socket | None,
        is_ready: Callable[[], None],
    ) -> None:
        super().__init__(config, is_ready)
        self._intake = intake
        self._token = token
        self._grpc_socket = grpc_socket
        self._grpc: GrpcReceiver | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start both."""
        await self._start_grpc()
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was accepted over either protocol; take nothing new."""
        self._intake.stop()
        if self._grpc is None:
            await super().shutdown(sockets)
        else:
            await asyncio.gather(super().shutdown(sockets), self._grpc.stop(SHUTDOWN_SECONDS))

    async def _start_grpc(self) -> None:
        if self._grpc_socket is None:
            return
        from fuseboard_collector.receiver import GrpcReceiver

        self._grpc = GrpcReceiver(self._intake, self._token)
        # gRPC makes its own socket; ours kept the port, and does not listen.
        await self._grpc.start(address_of(self._grpc_socket))
        self._grpc_socket.close()


def _shown(host: str, port: int) -> str:
    """Return host and port as gRPC clients are given them."""
    return url(host, port).removeprefix("http://")


def _lifespan(evaluator: Evaluator | None) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        if evaluator is None:
            yield
            return
        evaluator.start()
        try:
            yield
        finally:
            evaluator.stop()

    return lifespan


@dataclass(frozen=True, slots=True)
class _Sockets:
    ui: socket.socket
    collector: socket.socket
    grpc: socket.socket | None = None


@contextmanager
def _bound(settings: ServeSettings) -> Iterator[_Sockets]:
    wanted = [
        Wanted(settings.ui_host, settings.ui_port, "--ui-port"),
        Wanted(settings.host, settings.otlp_http_port, "--otlp-http-port"),
    ]
    if settings.otlp_grpc_port is not None:
        wanted.append(Wanted(settings.host, settings.otlp_grpc_port, "--otlp-grpc-port"))
    with ExitStack() as stack:
        yield _Sockets(*map(stack.enter_context, bind_all(wanted)))


@contextmanager
def _opened_store(settings: ServeSettings) -> Iterator[AnyStore]:
    from fuseboard_collector.errors import StoreError
    from fuseboard_collector.store import open_any

    make_folder(settings.data)
    try:
        store = open_any(
            settings.store or settings.data / DATA_FILE,
            retention_days=settings.retention_days,
            max_bytes=settings.max_bytes,
            memory_bytes=settings.memory_bytes,
        )
    except StoreError as error:
        raise explain_store_error(error) from error
    try:
        yield store
    finally:
        store.close()


def make_folder(data: Path) -> None:
    """Make a data folder if it is missing, for its owner alone.

    Raises:
        CommandError: If it can't be made.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"can't make the data folder {data}: {error.strerror}. Choose another with --data DIR.",
            Exit.DATA_UNUSABLE,
        ) from error


def explain_store_error(error: Exception) -> CommandError:
    """Turn an error of the store into the message and exit code of the command line."""
    from fuseboard_collector.errors import StoreDamagedError, StoreInUseError, StoreVersionError

    code = Exit.FAILED
    if isinstance(error, StoreInUseError):
        code = Exit.DATA_IN_USE
    elif isinstance(error, StoreDamagedError | StoreVersionError):
        code = Exit.DATA_UNUSABLE
    return CommandError(str(error), code)


def _front(settings: ServeSettings, here: presence.Presence) -> Front:
    return Front(here.dashboard, settings.ui_url, settings.login)


def _print_welcome(settings: ServeSettings, here: presence.Presence) -> None:
    lines = [
        "fuseboard is ready",
        *_front(settings, here).lines,
        f"  OTLP/HTTP  {here.collector}",
        f"  OTLP/gRPC  {here.grpc or 'off'}",
        f"  Data       {settings.store or settings.data}",
    ]
    if not settings.raises_alerts:
        lines.append("  Alerts     off: another server on the database raises them")
    elif settings.alert_time_scale != 1:
        lines.append(f"  Alerts     time scale {settings.alert_time_scale:g}: for demos only")
    lines.append("Ctrl-C stops it.")
    click.echo("\n".join(lines))
