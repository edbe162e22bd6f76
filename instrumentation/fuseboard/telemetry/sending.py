"""One OTLP/HTTP request and what its answer means. Runs on the worker thread only."""

from __future__ import annotations

import email.utils
import http.client
import os
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from fuseboard.telemetry.losses import Signal
from fuseboard.telemetry.redaction import redact

# What a server answers that knows nothing of such a path.
_WRONG_PLACE: Final = frozenset({404, 405})
RETRYABLE_STATUSES: Final = frozenset({408, 429, 502, 503, 504})
_ANSWER_LIMIT: Final = 64 * 1024
_CONNECTION_FAULTS: Final = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The collector has the batch.

    Attributes:
        rejected: Records of it that the collector refused (partial success).
        detail: Why, in the collector's words, redacted.
    """

    rejected: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The collector may take the batch later.

    Attributes:
        detail: What happened.
        retry_after: Seconds the collector asked to wait, if it did.
        is_refused: Whether nothing listens there, or the host has no address.
    """

    detail: str
    retry_after: float | None = None
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The collector will never take the batch.

    Attributes:
        status: The HTTP status.
    """

    status: int
    detail: str


Answer = Delivered | Unavailable | Refused


class Sender(Protocol):
    """Sends one encoded batch."""

    def send(self, signal: Signal, body: bytes, timeout: float) -> Answer:
        """Send a batch and wait at most ``timeout`` seconds per network operation."""

    def close(self) -> None:
        """Give up the connection."""


class HttpSender:
    """Posts batches over one kept connection per collector.

    The standard library's client is used on purpose: it is light to import, and no HTTP
    instrumentation of the application traces it.

    Args:
        urls: Where each signal goes, full URLs.
        headers: Sent with each request, for example ``Authorization``.
    """

    def __init__(self, urls: Mapping[Signal, str], headers: Mapping[str, str]) -> None:
        self._urls = {signal: urlsplit(url) for signal, url in urls.items()}
        self._headers = {
            **headers,
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
            "User-Agent": "fuseboard",
        }
        self._connections: dict[str, http.client.HTTPConnection] = {}

    def send(self, signal: Signal, body: bytes, timeout: float) -> Answer:
        """Send a batch; see :class:`Sender`."""
        url = self._urls[signal]
        connection = self._connections.get(url.netloc)
        is_fresh = connection is None
        try:
            return self._post(signal, body, timeout)
        except _CONNECTION_FAULTS as fault:
            self.close()
            # A kept connection may have been closed by the other side in the meantime.
            if is_fresh or isinstance(fault, TimeoutError):
                return _unavailable(fault)
        try:
            return self._post(signal, body, timeout)
        except _CONNECTION_FAULTS as fault:
            self.close()
            return _unavailable(fault)

    def _post(self, signal: Signal, body: bytes, timeout: float) -> Answer:
        url = self._urls[signal]
        connection = self._connections.get(url.netloc)
        if connection is None:
            connection = self._connections[url.netloc] = _connect(url.scheme, url.netloc)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        path = url.path + (f"?{url.query}" if url.query else "")
        connection.request("POST", path, body, self._headers)
        response = connection.getresponse()
        answer = _read(signal, response, url.geturl())
        if response.will_close or not response.isclosed():
            self.close()
        return answer

    def close(self) -> None:
        """Close all connections; the next request opens a new one."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _connect(scheme: str, netloc: str) -> http.client.HTTPConnection:
    host = netloc.rpartition("@")[2]
    if scheme != "https":
        return http.client.HTTPConnection(host)
    context = ssl.create_default_context(cafile=os.environ.get("OTEL_EXPORTER_OTLP_CERTIFICATE"))
    if certificate := os.environ.get("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"):
        context.load_cert_chain(certificate, os.environ.get("OTEL_EXPORTER_OTLP_CLIENT_KEY"))
    return http.client.HTTPSConnection(host, context=context)


def _unavailable(fault: Exception) -> Unavailable:
    words = redact(f"{type(fault).__name__}: {fault}", 200)
    is_refused = isinstance(fault, ConnectionRefusedError | socket.gaierror)
    return Unavailable(words, is_refused=is_refused)


def _read(signal: Signal, response: http.client.HTTPResponse, url: str) -> Answer:
    content = response.read(_ANSWER_LIMIT)
    if 200 <= response.status < 300:
        return _delivered(signal, content, response.getheader("Content-Type") or "")
    detail = f"HTTP {response.status} {redact(response.reason, 100)}"
    if response.status in RETRYABLE_STATUSES:
        return Unavailable(detail, retry_after=_seconds(response.getheader("Retry-After")))
    if response.status in _WRONG_PLACE:
        detail += f" from {redact(url)}; is this an OTLP/HTTP endpoint?"
    return Refused(response.status, detail)


def _delivered(signal: Signal, content: bytes, content_type: str) -> Delivered:
    if not content or "protobuf" not in content_type:
        return Delivered()
    try:
        if signal is Signal.SPANS:
            spans = ExportTraceServiceResponse.FromString(content).partial_success
            return Delivered(spans.rejected_spans, redact(spans.error_message, 200))
        logs = ExportLogsServiceResponse.FromString(content).partial_success
        return Delivered(logs.rejected_log_records, redact(logs.error_message, 200))
    except Exception:
        return Delivered()  # the status said that the batch was taken


def _seconds(retry_after: str | None) -> float | None:
    """Read ``Retry-After``: seconds, or an HTTP date."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
