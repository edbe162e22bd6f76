"""Reads the store of a collector that runs elsewhere, through its read API."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import quote

import pyarrow as pa

from fuseboard_collector import errors
from fuseboard_collector.errors import AccessDeniedError, StoreError
from fuseboard_collector.links import Links
from fuseboard_collector.reading import Batches

QUERY_PATH: Final = "/api/v1/query/"
STATS_PATH: Final = "/api/v1/stats"
ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
MAX_REFUSAL: Final = 64 * 1024
"""Bytes of an error's answer that are read."""


class RemoteReader:
    """A :class:`~fuseboard_collector.reading.Reader` over HTTP. Safe for several threads.

    Args:
        url: Base address of the collector, for example ``http://127.0.0.1:4318``.
        timeout: Seconds to wait for an answer.
        token: The collector's token for reading, if it wants one.
        denied: What to say where it wants a token, or another; None: how to give that for reading.

    Raises:
        ValueError: If the address is no HTTP URL.
    """

    def __init__(
        self,
        url: str,
        timeout: float = 60.0,
        token: str | None = None,
        denied: str | None = None,
    ) -> None:
        self.store_id = url.rstrip("/")
        self._links = Links(url, timeout)
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        kind = "a" if token is None else "another"
        self._denied = denied or (
            f"the collector at {self.store_id} wants {kind} token for reading: give its own with "
            "--read-token or FUSEBOARD_READ_TOKEN"
        )

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
        body = json.dumps(dict(parameters or {}), default=_encoded).encode()
        headers = {"content-type": "application/json", "accept": ARROW_STREAM}
        with self._asked("POST", QUERY_PATH + quote(name, safe=""), body, headers) as answer:
            with self._reaching():
                reader = pa.ipc.open_stream(answer)
            yield Batches(reader.schema, self._pieces(reader))

    @contextmanager
    def operated(
        self, path: str, wanted: Mapping[str, object]
    ) -> Iterator[http.client.HTTPResponse]:
        """Have the collector do something to its store; yield its answer.

        Args:
            path: One of those in ``operations``.
            wanted: Parameters.

        Raises:
            StoreError: If it can't be reached or does not do so.
        """
        headers = {"content-type": "application/json"}
        body = json.dumps(dict(wanted)).encode()
        with self._asked("POST", path, body, headers) as answer, self._reaching():
            yield answer

    def describe(self) -> dict[str, object]:
        """Return what the collector says of itself: counters, sizes, and how it evaluates alerts.

        Raises:
            StoreError: If it can't be reached or can't answer.
        """
        with self._asked("GET", STATS_PATH, None, {}) as answer, self._reaching():
            try:
                found = json.loads(answer.read())
            except ValueError as error:
                raise pa.ArrowInvalid(str(error)) from error
        return found if isinstance(found, dict) else {}

    @contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        with ExitStack() as stack:
            with self._reaching():
                answer = stack.enter_context(
                    self._links.asked(method, path, body, {**self._headers, **headers})
                )
                if answer.status == http.client.UNAUTHORIZED:
                    raise AccessDeniedError(self._denied)
                if answer.status != http.client.OK:
                    otherwise = f"{self.store_id} answered {answer.status} {answer.reason}"
                    raise _refusal(answer.read(MAX_REFUSAL), otherwise)
            yield answer

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
    if known is errors.QueryParameterError and "has no parameter" in message:
        message += ". Is that collector older than this fuseboard? Upgrade the collector first"
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
