"""Reads the store of a collector that runs elsewhere, through its read API."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import quote, urlsplit

import pyarrow as pa

from fuseboard_collector import errors
from fuseboard_collector.errors import StoreError
from fuseboard_collector.reading import Batches

QUERY_PATH: Final = "/api/v1/query/"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
MAX_REFUSAL: Final = 64 * 1024
"""Bytes of an error's answer that are read."""


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
        with self.stream(name, parameters) as answer:
            return pa.Table.from_batches(answer.pieces, answer.schema)

    @contextmanager
    def stream(
        self, name: str, parameters: Mapping[str, object] | None = None
    ) -> Iterator[Batches]:
        """Run a named query and read its answer as it comes.

        Raises:
            UnknownQueryError: If the collector has no query of that name.
            StoreError: If it can't be reached or can't answer.
        """
        body = json.dumps(dict(parameters or {}), default=_encoded)
        with closing(self._connect()) as link:
            with self._reaching():
                reader = pa.ipc.open_stream(self._ask(link, name, body))
            yield Batches(reader.schema, self._pieces(reader))

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_https else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)

    def _ask(
        self, link: http.client.HTTPConnection, name: str, body: str
    ) -> http.client.HTTPResponse:
        link.request(
            "POST",
            self._base + QUERY_PATH + quote(name, safe=""),
            body,
            {"content-type": "application/json", "accept": ARROW_STREAM},
        )
        answer = link.getresponse()
        if answer.status != http.client.OK:
            otherwise = f"{self.store_id} answered {answer.status} {answer.reason}"
            raise _refusal(answer.read(MAX_REFUSAL), otherwise)
        return answer

    def _pieces(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        while True:
            with self._reaching():
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Say which collector it was that did not answer, or not in Arrow."""
        try:
            yield
        except pa.ArrowInvalid as error:
            raise StoreError(
                f"{self.store_id} does not answer like a fuseboard collector: {error}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise StoreError(
                f"no answer from the collector at {self.store_id}: "
                f"{error or type(error).__name__}. Is `fuseboard serve` running there?"
            ) from error


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
