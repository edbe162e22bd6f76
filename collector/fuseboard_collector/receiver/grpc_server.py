"""OTLP/gRPC: the three export services and gRPC's health check, on the same intake as HTTP.

Handlers get raw bytes, so that a message that can't be decoded is refused with the same words as
over HTTP. Messages are unpacked here and not by gRPC, which unpacks the whole of a message before
it looks at its size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from fuseboard_collector.receiver.answers import export_response
from fuseboard_collector.receiver.body import MAX_BODY, Encoding
from fuseboard_collector.receiver.errors import (
    RefusedError,
    StoppingError,
    UnauthenticatedError,
)
from fuseboard_collector.receiver.intake import Intake, Signal, reasons
from fuseboard_collector.receiver.unpacking import Packing
from fuseboard_collector.tokens import OPEN, Token

if TYPE_CHECKING:
    Handler = Callable[[bytes, aio.ServicerContext[bytes, bytes]], Awaitable[bytes]]

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
_GZIP_MAGIC = b"\x1f\x8b"  # as protobuf: field 3 of wire type 7, which does not exist
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # or a second server would quietly share the port
    ("grpc.max_receive_message_length", MAX_BODY),
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", 0b101),  # identity and gzip
    ("grpc.max_concurrent_streams", 64),
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
            server.add_generic_rpc_handlers((_unary(service, "Export", self._exporting(signal)),))
        server.add_generic_rpc_handlers((_unary(HEALTH, "Check", self._health),))
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
        async def export(message: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
            try:
                answer = await self._export(signal, message, context)
            except RefusedError as error:
                code = _CODES[error.code if error.grpc_code is None else error.grpc_code]
                self._intake.stats.add("refused_requests", label=code.name)
                self._intake.count_answer("grpc", signal, code.name)
                await _abort(context, code, error)
            self._intake.count_answer("grpc", signal, "OK")
            return answer

        return export

    async def _export(
        self, signal: Signal, message: bytes, context: aio.ServicerContext[bytes, bytes]
    ) -> bytes:
        self._intake.stats.add("requests", label=signal.word)
        if not self._token.admits(_metadata(context, "authorization")):
            raise UnauthenticatedError(WHO)
        packing = Packing.GZIP if message.startswith(_GZIP_MAGIC) else Packing.NONE
        with self._intake.room() as room:
            room.take(len(message))
            try:
                rejected = await self._intake.take(
                    signal, Encoding.PROTOBUF, packing, message, room
                )
            except asyncio.CancelledError:
                if not self._intake.is_stopping:
                    raise  # the client hung up
                raise StoppingError("the server is stopping") from None
        return export_response(signal, rejected.total(), reasons(rejected))

    async def _health(self, _: bytes, __: aio.ServicerContext[bytes, bytes]) -> bytes:
        return SERVING if self._intake.is_ready() else NOT_SERVING


def _unary(service: str, method: str, handler: Handler) -> grpc.GenericRpcHandler[Any, Any]:
    unary = grpc.unary_unary_rpc_method_handler(handler)
    return grpc.method_handlers_generic_handler(service, {method: unary})


def _metadata(context: aio.ServicerContext[bytes, bytes], name: str) -> str | bytes | None:
    values = [value for key, value in context.invocation_metadata() or () if key == name]
    return values[0] if len(values) == 1 else None


async def _abort(
    context: aio.ServicerContext[bytes, bytes], code: grpc.StatusCode, error: RefusedError
) -> NoReturn:
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
