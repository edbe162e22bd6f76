"""OTLP/HTTP: three routes that answer only after the commit."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fuseboard.clock import Clock, SystemClock
from fuseboard_collector.errors import StoreError
from fuseboard_collector.normalise.normaliser import normalise_logs, normalise_traces
from fuseboard_collector.receiver import otlp_json, otlp_protobuf
from fuseboard_collector.receiver.answers import Signal, accepted, refused
from fuseboard_collector.receiver.body import Encoding, encoding_of, is_compressed, read, unpack
from fuseboard_collector.receiver.errors import OverloadedError, RefusedError
from fuseboard_collector.store.surface import AnyStore

logger = logging.getLogger(__name__)

MAX_BYTES_IN_FLIGHT = 256 * 1024 * 1024
"""Bodies that may be in memory at once, packed and unpacked; more are asked to come back."""
LARGE_BODY = 4 * 1024 * 1024

Taken = tuple[Future[None] | None, Counter[str]]
"""The commit to wait for, if there is anything to commit, and what was rejected and why."""


class Receiver:
    """Decodes requests on worker threads and hands their rows to the store."""

    def __init__(self, store: AnyStore, clock: Clock) -> None:
        self._store = store
        self._stats = store.stats
        self._clock = clock
        self._bytes_in_flight = 0
        self._large = asyncio.Semaphore(1)

    async def traces(self, request: Request) -> Response:
        """Answer ``POST /v1/traces``."""
        return await self._answer(request, Signal.TRACES, self._take_traces)

    async def logs(self, request: Request) -> Response:
        """Answer ``POST /v1/logs``."""
        return await self._answer(request, Signal.LOGS, self._take_logs)

    async def metrics(self, request: Request) -> Response:
        """Answer ``POST /v1/metrics``: the store derives its own; these are only counted."""
        return await self._answer(request, Signal.METRICS, self._take_metrics)

    async def _answer(
        self, request: Request, signal: Signal, take: Callable[[Encoding, bytes], Taken]
    ) -> Response:
        encoding: Encoding | None = None
        kind = signal.name.lower()
        self._stats.add("requests", label=kind)
        try:
            encoding = encoding_of(request)
            compressed = is_compressed(request)
            rejected = await self._store_body(request, encoding, compressed, take)
        except asyncio.CancelledError:
            # The server stops and has waited long enough. A client that gets an answer keeps its
            # data and comes back; what was stored already is known as a repeat then.
            return refused(OverloadedError("the server is stopping"), encoding)
        except RefusedError as error:
            self._stats.add("refused_requests", label=str(error.status))
            return refused(error, encoding)
        for reason, amount in rejected.items():
            self._stats.add(f"rejected_{kind}", amount, reason)
        why = ", ".join(f"{amount} × {reason}" for reason, amount in rejected.most_common(5))
        return accepted(signal, encoding, rejected.total(), why)

    async def _store_body(
        self,
        request: Request,
        encoding: Encoding,
        compressed: bool,
        take: Callable[[Encoding, bytes], Taken],
    ) -> Counter[str]:
        share = 0

        def count(size: int) -> None:
            nonlocal share
            if self._bytes_in_flight + size > MAX_BYTES_IN_FLIGHT:
                raise OverloadedError("too many requests are being read and decoded")
            self._bytes_in_flight += size
            share += size

        try:
            body = await read(request, count=count)
            self._stats.add("received_bytes", len(body))
            if compressed:
                body = await asyncio.to_thread(unpack, body)
                count(len(body))
            async with self._turn(len(body)):
                done, rejected = await asyncio.to_thread(take, encoding, body)
            if done is not None:
                await asyncio.wrap_future(done)
        except StoreError as error:
            # Busy, not open or broken: the data is good and the client should keep it.
            raise OverloadedError(str(error)) from error
        finally:
            self._bytes_in_flight -= share
        return rejected

    def _turn(self, size: int) -> AbstractAsyncContextManager[object]:
        """Let large bodies be decoded one at a time: their objects take twenty times the bytes."""
        return self._large if size > LARGE_BODY else nullcontext()

    def _take_traces(self, encoding: Encoding, body: bytes) -> Taken:
        codec = otlp_json if encoding is Encoding.JSON else otlp_protobuf
        traces = codec.decode_traces(body)
        batch = normalise_traces(traces, self._now())
        self._stats.add("accepted_spans", len(batch))
        return (self._store.append(batch) if len(batch) else None), traces.rejected

    def _take_logs(self, encoding: Encoding, body: bytes) -> Taken:
        codec = otlp_json if encoding is Encoding.JSON else otlp_protobuf
        batch, ignored, rejected = normalise_logs(codec.decode_logs(body), self._now())
        self._stats.add("accepted_events", len(batch))
        self._stats.add("ignored_logs", ignored)
        return (self._store.append(batch) if len(batch) else None), rejected

    def _take_metrics(self, encoding: Encoding, body: bytes) -> Taken:
        codec = otlp_json if encoding is Encoding.JSON else otlp_protobuf
        self._stats.add("ignored_metrics", codec.count_metrics(body))
        return None, Counter()

    def _now(self) -> int:
        return self._clock.time_ns() // 1000


def routes(store: AnyStore, *, clock: Clock | None = None) -> list[Route]:
    """Return the OTLP/HTTP routes ``/v1/traces``, ``/v1/logs`` and ``/v1/metrics``.

    Args:
        store: Where the rows go.
        clock: Source of the time of arrival; the machine's by default.
    """
    receiver = Receiver(store, clock or SystemClock())
    handlers: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/v1/traces": receiver.traces,
        "/v1/logs": receiver.logs,
        "/v1/metrics": receiver.metrics,
    }
    return [Route(path, handler, methods=["POST"]) for path, handler in handlers.items()]
