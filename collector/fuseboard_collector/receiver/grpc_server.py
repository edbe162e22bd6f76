"""OTLP/gRPC: the three export services and gRPC's health check, on the same intake as HTTP.

Handlers get raw bytes, so that a message that can't be decoded is refused with the same words as
over HTTP, and they get them as streams of one message, so that gRPC reads nothing of a call before
its token was looked at and there is room. Messages are unpacked here and not by gRPC, which unpacks
the whole of a message before it looks at its size.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from fuseboard_collector.receiver.answers import export_response
from fuseboard_collector.receiver.body import BODY_SECONDS, MAX_BODY, Encoding, too_slow
from fuseboard_collector.receiver.errors import (
    MalformedError,
    OverloadedError,
    RefusedError,
    StoppingError,
    UnauthenticatedError,
)
from fuseboard_collector.receiver.intake import MAX_BYTES_IN_FLIGHT, Intake, Signal, reasons
from fuseboard_collector.receiver.unpacking import Packing
from fuseboard_collector.tokens import OPEN, Token

if TYPE_CHECKING:
    Context: TypeAlias = aio.ServicerContext[bytes, bytes]
    Handler = Callable[[AsyncIterator[bytes], Context], Awaitable[bytes]]

SERVICES: Final = {
    Signal.TRACES: "opentelemetry.proto.collector.trace.v1.TraceService",
    Signal.LOGS: "opentelemetry.proto.collector.logs.v1.LogsService",
    Signal.METRICS: "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
HEALTH: Final = "grpc.health.v1.Health"
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"
"""A ``HealthCheckResponse`` with its one field; not worth a package of its own."""

WHO = "send the server's token as metadata: authorization: Bearer TOKEN"
READING_AT_ONCE: Final = MAX_BYTES_IN_FLIGHT // MAX_BODY
"""Messages that may be arriving; gRPC holds what has come of one, and tells nobody."""
TURN_SECONDS: Final = 10.0
"""How long a call waits to be read. Until then gRPC holds 64 KiB of it at most."""
_GZIP_MAGIC = b"\x1f\x8b"  # as protobuf: field 3 of wire type 7, which does not exist
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # or a second server would quietly share the port
    ("grpc.max_receive_message_length", MAX_BODY),
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", 0b101),  # identity and gzip
    ("grpc.max_concurrent_streams", 64),
    # Without guesses at the line's capacity: they let 16 MiB of each unread message come.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 64 * 1024),
    ("grpc.server_handshake_timeout_ms", 20_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


class GrpcReceiver:
    """A server of OTLP/gRPC on the running event loop.

    Args:
        intake: Takes the messages.
        token: Whose bearer may send.
    """

    def __init__(self, intake: Intake, token: Token = OPEN) -> None:
        self._intake = intake
        self._token = token
        self._server: aio.Server | None = None
        self._reading = asyncio.Semaphore(READING_AT_ONCE)

    async def start(self, address: str) -> int:
        """Listen and serve.

        Args:
            address: Host and port, as in ``127.0.0.1:4317`` or ``[::1]:0``.

        Returns:
            The port.

        Raises:
            OSError: If the port can't be had.
        """
        server = aio.server(options=_OPTIONS)
        for signal, service in SERVICES.items():
            server.add_generic_rpc_handlers((_method(service, "Export", self._exporting(signal)),))
        server.add_generic_rpc_handlers((_method(HEALTH, "Check", self._health),))
        try:
            port: int = server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(f"can't listen on {address}: {error}") from error
        await server.start()
        self._server = server
        return port

    async def stop(self, seconds: float) -> None:
        """Finish what was taken, for at most ``seconds``; refuse what comes now."""
        self._intake.stop()
        if self._server is not None:
            await self._server.stop(seconds)

    def _exporting(self, signal: Signal) -> Handler:
        async def export(messages: AsyncIterator[bytes], context: Context) -> bytes:
            try:
                answer = await self._export(signal, messages, context)
            except RefusedError as error:
                refusal = _without_frames(error)
            else:
                self._intake.count_answer("grpc", signal, "OK")
                return answer
            code = _CODES[refusal.code if refusal.grpc_code is None else refusal.grpc_code]
            self._intake.stats.add("refused_requests", label=code.name)
            self._intake.count_answer("grpc", signal, code.name)
            return await _abort(context, code, refusal)

        return export

    async def _export(
        self, signal: Signal, messages: AsyncIterator[bytes], context: Context
    ) -> bytes:
        self._intake.stats.add("requests", label=signal.word)
        if not self._token.admits(_metadata(context, "authorization")):
            raise UnauthenticatedError(WHO)
        with self._intake.room() as room:
            try:
                message = await self._message(messages)
                room.take(len(message))
                packing = Packing.GZIP if message.startswith(_GZIP_MAGIC) else Packing.NONE
                rejected = await self._intake.take(
                    signal, Encoding.PROTOBUF, packing, message, room
                )
            except asyncio.CancelledError:
                if not self._intake.is_stopping:
                    raise  # the client hung up
                raise StoppingError("the server is stopping") from None
        return export_response(signal, rejected.total(), reasons(rejected))

    async def _message(self, messages: AsyncIterator[bytes]) -> bytes:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._reading.acquire()
        except TimeoutError:
            raise OverloadedError("too many requests are being read") from None
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await anext(messages, None)
        except TimeoutError:
            raise too_slow() from None
        finally:
            self._reading.release()
        if message is None:
            raise MalformedError("the call has no message")
        return message

    async def _health(self, _: AsyncIterator[bytes], __: Context) -> bytes:
        return SERVING if self._intake.is_ready() else NOT_SERVING


def _method(service: str, name: str, handler: Handler) -> grpc.GenericRpcHandler[Any, Any]:
    method = grpc.stream_unary_rpc_method_handler(handler)
    return grpc.method_handlers_generic_handler(service, {name: method})


def _metadata(context: Context, name: str) -> str | bytes | None:
    values = [value for key, value in context.invocation_metadata() or () if key == name]
    return values[0] if len(values) == 1 else None


def _without_frames(error: RefusedError) -> RefusedError:
    """Let go of the frames that an error came through: they hold the message.

    What ends a call is kept until Python looks for cycles, and a message may be large.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


async def _abort(context: Context, code: grpc.StatusCode, error: RefusedError) -> NoReturn:
    """End the call; OTLP has clients retry RESOURCE_EXHAUSTED only where they are told when to."""
    message = str(error)
    trailing: tuple[tuple[str, bytes], ...] = ()
    if error.retry_after:
        info = RetryInfo(retry_delay=Duration(seconds=error.retry_after))
        detail = AnyMessage()
        detail.Pack(info)
        status = Status(code=code.value[0], message=message, details=[detail])
        trailing = (
            ("grpc-status-details-bin", status.SerializeToString()),
            # Where Python's exporters looked for it before they read the details.
            ("google.rpc.retryinfo-bin", info.SerializeToString()),
        )
    await context.abort(code, message, trailing)
    raise AssertionError("abort raises")
