"""Puts files of telemetry into a store or a running collector, and tells what became of them."""

from __future__ import annotations

import gzip
import http.client
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from fuseboard.clock import SystemClock
from fuseboard_collector.errors import StoreBusyError, StoreError
from fuseboard_collector.links import Links
from fuseboard_collector.reading import Reader
from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.errors import RefusedError
from fuseboard_collector.receiver.files import FileError, Found, requests
from fuseboard_collector.receiver.intake import Intake, Signal
from fuseboard_collector.receiver.reduction import Key, reduced
from fuseboard_server.exits import CommandError

if TYPE_CHECKING:
    from fuseboard_collector.store import AnyStore

PATIENCE_SECONDS: Final = 60.0
"""How long a store that is busy is asked again before the import gives up."""
PAUSE_SECONDS: Final = 1.0
MAX_REASONS: Final = 20
"""Reasons of a file that are told apart: each line of a large one may be wrong in its own way."""
OTHERS: Final = "other reasons"
TRACES_AT_ONCE: Final = 5_000


class PutError(Exception):
    """One request was refused for good; the others may be welcome."""


class Destination(Protocol):
    """Where requests go.

    Attributes:
        place: Where that is, in words that follow "imported into".
        reader: Tells what is there already.
    """

    place: str
    reader: Reader

    def put(self, signal: Signal, encoding: Encoding, body: bytes) -> Counter[str]:
        """Store a request durably; return how many records can't be stored, by reason.

        Raises:
            PutError: If the request is refused for good.
            CommandError: If nothing can be stored any more.
        """


@dataclass(slots=True)
class Report:
    """What became of a file.

    Attributes:
        records: Spans, log records and requests of metrics that it has.
        repeated: Those that were there already.
        rejected: Those that can't be stored, and documents that can't be read, by reason.
        failure: Why the rest of the file was not read; empty if all of it was.
    """

    records: Counter[Signal] = field(default_factory=Counter)
    repeated: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    failure: str = ""

    def reject(self, reasons: Mapping[str, int]) -> None:
        """Count what can't be stored, by reason."""
        for reason, amount in reasons.items():
            is_told = reason in self.rejected or len(self.rejected) < MAX_REASONS
            self.rejected[reason if is_told else OTHERS] += amount

    def words(self) -> str:
        """Say it in one line."""
        parts = [
            f"{self.records[signal]} {name}"
            for signal, name in NAMES.items()
            if self.records[signal]
        ]
        parts = parts or ["nothing"]
        if self.repeated:
            parts.append(f"{self.repeated} of them were there already")
        if self.rejected:
            why = ", ".join(f"{n} × {reason}" for reason, n in self.rejected.most_common(5))
            parts.append(f"{self.rejected.total()} rejected ({why})")
        if self.failure:
            parts.append(f"then it failed: {self.failure}")
        return "; ".join(parts)


NAMES: Final = {
    Signal.TRACES: "spans",
    Signal.LOGS: "log records",
    Signal.METRICS: "requests of metrics (only counted)",
}


def import_file(path: Path, to: Destination, progress: Callable[[int], None]) -> Report:
    """Import one file.

    Args:
        path: The file.
        to: Where.
        progress: Told how many bytes of the file were read so far.

    Raises:
        CommandError: If nothing can be stored any more.
    """
    report = Report()
    try:
        for found in requests(path):
            if isinstance(found, FileError):
                report.reject({str(found): 1})
            else:
                _import(found, to, report)
                progress(found.position)
    except FileError as error:
        report.failure = str(error)
    except StoreError as error:
        raise CommandError(f"the import stopped: {error}") from error
    except OSError as error:
        report.failure = f"it can't be read: {error.strerror or error}"
    return report


def _import(found: Found, to: Destination, report: Report) -> None:
    request = reduced(found.signal, found.encoding, found.body, _known_by(to.reader))
    report.records[found.signal] += request.records or (found.signal is Signal.METRICS)
    report.repeated += request.repeated
    if request.records and request.repeated == request.records:
        return
    try:
        report.reject(to.put(found.signal, found.encoding, request.body))
    except PutError as error:
        where = f"{found.place}: " if found.place else ""
        report.reject({f"{where}{error}": 1})


def _known_by(reader: Reader) -> Callable[[Sequence[str]], Iterable[Key]]:
    def known(traces: Sequence[str]) -> Iterator[Key]:
        for start in range(0, len(traces), TRACES_AT_ONCE):
            some = list(traces[start : start + TRACES_AT_ONCE])
            answer = reader.query("import_known_spans", {"traces": some})
            yield from zip(
                answer.column("trace_id").to_pylist(),
                answer.column("span_id").to_pylist(),
                strict=True,
            )

    return known


class IntoStore:
    """Stores in this process."""

    def __init__(self, store: AnyStore, place: str) -> None:
        self.place = place
        self.reader: Reader = store
        self._intake = Intake(store, SystemClock())

    def put(self, signal: Signal, encoding: Encoding, body: bytes) -> Counter[str]:
        """Store a request."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                taken = self._intake.decode(signal, encoding, body)
                if taken.done is not None:
                    taken.done.result()
            except RefusedError as error:
                raise PutError(str(error)) from error
            except StoreBusyError as error:
                if time.monotonic() > deadline:
                    raise CommandError(f"the import stopped: {error}") from error
                time.sleep(PAUSE_SECONDS)
            except StoreError as error:
                raise CommandError(f"the import stopped: {error}") from error
            else:
                return taken.rejected


class IntoCollector:
    """Sends to a running collector over OTLP/HTTP.

    Args:
        url: Its address.
        reader: Reads from it.
        token: Its token for senders; None: it needs none.
    """

    def __init__(self, url: str, reader: Reader, token: str | None) -> None:
        self.place = f"the server at {url}"
        self.reader = reader
        self._url = url
        self._links = Links(url, PATIENCE_SECONDS)
        self._headers = {"content-encoding": "gzip"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"

    def put(self, signal: Signal, encoding: Encoding, body: bytes) -> Counter[str]:
        """Send a request, again while the collector asks for it."""
        headers = {**self._headers, "content-type": encoding.value}
        packed = gzip.compress(body, 1)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            with self._reaching():
                status, answer, pause = self._post(f"/v1/{signal.word}", packed, headers)
            if status == http.client.OK:
                return _rejected(signal, encoding, answer)
            if status == http.client.UNAUTHORIZED:
                raise CommandError(
                    f"{self.place} wants its token for senders: give it with --token, "
                    "--token-file or FUSEBOARD_TOKEN"
                )
            said = _message(encoding, answer) or f"answered {status}"
            if status not in (429, 502, 503, 504):
                raise PutError(said)
            if time.monotonic() > deadline:
                raise CommandError(f"the import stopped: {self.place} says: {said}")
            time.sleep(pause)

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, float]:
        with self._links.asked("POST", path, body, headers) as answer:
            after = answer.getheader("retry-after", "")
            pause = float(after) if after.isdecimal() else PAUSE_SECONDS
            return answer.status, answer.read(), min(pause, PATIENCE_SECONDS)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            host = urlsplit(self._url).netloc.rpartition("@")[2]
            raise CommandError(
                f"the import stopped: {host} does not answer: {error or type(error).__name__}. "
                "What was imported is stored; repeat the command for the rest."
            ) from error


def _rejected(signal: Signal, encoding: Encoding, answer: bytes) -> Counter[str]:
    """Return the records of a partial success, by the collector's words."""
    from fuseboard_collector.receiver.answers import partial_success

    amount, why = partial_success(signal, encoding, answer)
    return Counter({why: amount} if amount else {})


def _message(encoding: Encoding, answer: bytes) -> str:
    from google.protobuf.message import DecodeError
    from google.rpc.status_pb2 import Status

    try:
        if encoding is Encoding.JSON:
            return str(json.loads(answer)["message"])
        return str(Status.FromString(answer).message)
    except (ValueError, LookupError, TypeError, DecodeError):
        return ""
