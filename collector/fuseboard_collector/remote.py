"""Reads the store of a collector that runs elsewhere, through its read API."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import quote, urlsplit

import pyarrow as pa

from fuseboard_collector import errors
from fuseboard_collector.errors import StoreError

QUERY_PATH: Final = "/api/v1/query/"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"


class RemoteReader:
    """A :class:`~fuseboard_collector.reading.Reader` over HTTP. Safe for several threads.

    Args:
        url: Base address of the collector, for example ``http://127.0.0.1:4318``.
        timeout: Seconds to wait for an answer.

    Raises:
        ValueError: If the address is no HTTP URL.
    """

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a collector; like http://127.0.0.1:4318")
        self.store_id = url.rstrip("/")
        self._is_https = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self._timeout = timeout

    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        """Run a named query; see :class:`~fuseboard_collector.reading.Reader`.

        Raises:
            UnknownQueryError: If the collector has no query of that name.
            StoreError: If it can't be reached or can't answer.
        """
        body = json.dumps(dict(parameters or {}), default=_encoded)
        link = self._connect()
        try:
            link.request(
                "POST",
                self._base + QUERY_PATH + quote(name, safe=""),
                body,
                {"content-type": "application/json", "accept": ARROW_STREAM},
            )
            answer = link.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise StoreError(
                f"no answer from the collector at {self.store_id}: "
                f"{error or type(error).__name__}. Is `fuseboard serve` running there?"
            ) from error
        finally:
            link.close()
        return self._decode(answer, content)

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_https else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)

    def _decode(self, answer: http.client.HTTPResponse, content: bytes) -> pa.Table:
        if answer.status == http.client.OK:
            try:
                return pa.ipc.open_stream(content).read_all()
            except pa.ArrowInvalid as error:
                raise StoreError(
                    f"{self.store_id} does not answer like a fuseboard collector: {error}"
                ) from error
        raise _refusal(content, f"{self.store_id} answered {answer.status} {answer.reason}")


def _refusal(content: bytes, otherwise: str) -> StoreError:
    """Return the collector's own error, of its own type where it is one of ours."""
    try:
        document = json.loads(content)
        kind, message = str(document["kind"]), str(document["error"])
    except (ValueError, LookupError, TypeError):
        return StoreError(otherwise)
    known = getattr(errors, kind, StoreError)
    if isinstance(known, type) and issubclass(known, StoreError):
        return known(message)
    return StoreError(message)


def _encoded(value: object) -> object:
    """Return a parameter as JSON can carry it; naive times are UTC."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, set | frozenset | tuple):
        return sorted(value)
    raise TypeError(f"a query parameter can't be {type(value).__name__}: {value!r}")
