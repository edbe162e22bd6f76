"""A collector's gRPC port on a loop of its own, and a client that speaks raw bytes to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from fuseboard.clock import SystemClock
from fuseboard_collector.receiver import GrpcReceiver, Intake
from fuseboard_collector.receiver.grpc_server import SERVICES
from fuseboard_collector.receiver.intake import Signal
from fuseboard_collector.store import Store
from fuseboard_collector.tokens import OPEN, Token


@dataclass
class Serving:
    """A gRPC server in this process."""

    address: str
    intake: Intake
    receiver: GrpcReceiver
    loop: asyncio.AbstractEventLoop

    def stop(self, seconds: float) -> Any:
        """Begin to stop; the result is a future."""
        return asyncio.run_coroutine_threadsafe(self.receiver.stop(seconds), self.loop)


@contextmanager
def serving_grpc(store: Store, token: Token = OPEN) -> Iterator[Serving]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Serving:
        intake = Intake(store, SystemClock())
        receiver = GrpcReceiver(intake, token)
        port = await receiver.start("127.0.0.1:0")
        return Serving(f"127.0.0.1:{port}", intake, receiver, loop)

    serving = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    try:
        yield serving
    finally:
        serving.stop(0).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@dataclass
class Answer:
    """What a call came to."""

    code: grpc.StatusCode
    content: bytes = b""
    message: str = ""
    status: Status | None = None

    @property
    def retry_after(self) -> float | None:
        """Seconds of google.rpc.RetryInfo in the details; None without."""
        for detail in self.status.details if self.status is not None else ():
            info = RetryInfo()
            if detail.Unpack(info):
                return info.retry_delay.seconds + info.retry_delay.nanos / 1e9
        return None


class Client:
    """Sends export requests as they are."""

    def __init__(self, address: str) -> None:
        unlimited = [("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0)]
        self._channel = grpc.insecure_channel(address, options=unlimited)

    def close(self) -> None:
        self._channel.close()

    def call(self, path: str, body: bytes, **options: Any) -> Answer:
        try:
            return Answer(
                grpc.StatusCode.OK,
                self._channel.unary_unary(path)(body, timeout=30, wait_for_ready=True, **options),
            )
        except grpc.RpcError as error:
            trailing = dict(error.trailing_metadata() or ())
            details = trailing.get("grpc-status-details-bin")
            status = None if details is None else Status.FromString(details)
            return Answer(error.code(), b"", error.details() or "", status)

    def export(self, body: bytes, signal: Signal = Signal.TRACES, **options: Any) -> Answer:
        return self.call(f"/{SERVICES[signal]}/Export", body, **options)
