"""HTTP connections to one server that are kept and used again."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

MAX_IDLE: Final = 8
"""Connections that are kept; a dashboard's page asks about as many questions at once."""
_GONE: Final = (
    http.client.RemoteDisconnected,
    ConnectionResetError,
    ConnectionAbortedError,
    BrokenPipeError,
)
"""How a connection fails that the server has closed since it was last used."""


class Links:
    """Asks one server, over as few connections as there are questions at once. Thread-safe.

    Args:
        url: Base address.
        timeout: Seconds to wait for each step of an answer.

    Raises:
        ValueError: If the address is no HTTP URL.
    """

    def __init__(self, url: str, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a collector; like http://127.0.0.1:4318")
        self._is_https = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self._timeout = timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    @contextmanager
    def asked(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and yield its answer, to be read inside the ``with`` block.

        Args:
            method: HTTP's.
            path: Appended to the base address.
            body: What to send. It may be sent twice, so the request must change nothing, or
                nothing more the second time.
            headers: To send along.

        Raises:
            OSError: If the server can't be reached.
            http.client.HTTPException: If it does not speak HTTP.
        """
        link, answer = self._send(method, self._base + path, body, dict(headers))
        try:
            yield answer
        except BaseException:
            link.close()
            raise
        if _is_whole(answer):
            self._keep(link)
        else:
            link.close()

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        link = self._kept()
        if link is not None:
            try:
                return link, _exchange(link, method, path, body, headers)
            except _GONE:
                link.close()
        link = self._new()
        return link, _exchange(link, method, path, body, headers)

    def _kept(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, link: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(link)
                return
        link.close()

    def _new(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_https else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        """Close what is kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()


def _is_whole(answer: http.client.HTTPResponse) -> bool:
    """Tell whether an answer was read to its end, so that its connection can be used again."""
    try:
        return (answer.isclosed() or not answer.read(1)) and not answer.will_close
    except (OSError, http.client.HTTPException):
        return False


def _exchange(
    link: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
) -> http.client.HTTPResponse:
    try:
        link.request(method, path, body, headers)
        return link.getresponse()
    except BaseException:
        link.close()
        raise
