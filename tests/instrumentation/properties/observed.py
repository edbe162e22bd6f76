"""What the outside sees: the exposition text, and what arrives at an OTLP receiver."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import logging
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

from opentelemetry import trace
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from fuseboard import conventions as c
from fuseboard import setup
from fuseboard.runtime import RUNTIME, NullTelemetry
from fuseboard.telemetry import exit as process_exit

_PATH_SETTINGS: Final = {
    "fast": {},
    "sdk": {"OTEL_ATTRIBUTE_COUNT_LIMIT": "128"},
    "unsampled": {"OTEL_TRACES_SAMPLER": "always_off"},
}


class Receiver:
    """An OTLP/HTTP receiver that keeps what arrives."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.bodies.append((self.path, gzip.decompress(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Any]:
        requests = [
            ExportTraceServiceRequest.FromString(body)
            for path, body in tuple(self.bodies)
            if path == "/v1/traces"
        ]
        groups = [group for request in requests for group in request.resource_spans]
        return [span for group in groups for scope in group.scope_spans for span in scope.spans]

    def logs(self, event: str) -> list[dict[str, Any]]:
        requests = [
            ExportLogsServiceRequest.FromString(body)
            for path, body in tuple(self.bodies)
            if path == "/v1/logs"
        ]
        groups = [group for request in requests for group in request.resource_logs]
        records = [r for g in groups for scope in g.scope_logs for r in scope.log_records]
        return [as_dict(record.attributes) for record in records if record.event_name == event]


def as_dict(attributes: Any) -> dict[str, Any]:
    """Return OTLP attributes as a dict."""
    found = {}
    for attribute in attributes:
        kind = attribute.value.WhichOneof("value")
        found[attribute.key] = getattr(attribute.value, kind) if kind else None
    return found


@dataclass(frozen=True)
class SeenCall:
    """A call as its span or its log record tells it; times in seconds."""

    outcome: str
    error_class: str | None
    attempts: int
    backoff: float
    start: float
    duration: float
    items: int | None
    breaker_state: str | None
    attempt_spans: tuple[Any, ...] = ()
    ids: tuple[str, str] | None = None

    @property
    def facts(self) -> tuple[Any, ...]:
        """What a log record says of it as well."""
        return (
            self.outcome,
            self.error_class,
            self.attempts,
            round(self.backoff, 6),
            round(self.duration, 6),
            self.breaker_state,
            self.ids,
        )


class LogRecords(logging.Handler):
    """Takes down the log records of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take down all that come meanwhile, and keep them from everybody else."""
        logger = logging.getLogger(c.CALL_LOGGER)
        with (
            mock.patch.object(logger, "level", logging.DEBUG),
            mock.patch.object(logger, "propagate", False),
            mock.patch.object(logger, "handlers", [self]),
        ):
            logger.manager._clear_cache()  # type: ignore[attr-defined]
            yield
        logger.manager._clear_cache()  # type: ignore[attr-defined]

    def facts(self, *, with_ids: bool) -> list[tuple[Any, ...]]:
        """Return what the records say of their calls."""
        return [
            (
                record.outcome,
                record.error_class,
                record.attempts,
                round(record.backoff_seconds, 6),
                round(record.duration_seconds, 6),
                record.breaker_state,
                (record.trace_id, record.span_id) if with_ids else None,
            )
            for record in self.records
        ]


def calls_of(receiver: Receiver, path: str) -> list[SeenCall]:
    """Return the calls that arrived, in the order of their starts."""
    spans = receiver.spans()
    if path == "unsampled":
        assert spans == []
        found = [
            _call(a, a[c.CALL_START_UNIX_NANO], round(a[c.CALL_DURATION_SECONDS] * 1e9), ())
            for a in receiver.logs(c.EVENT_TOOL_CALL)
        ]
    else:
        assert receiver.logs(c.EVENT_TOOL_CALL) == []
        roots = [span for span in spans if span.name.startswith(c.EXECUTE_TOOL)]
        found = [
            _call(
                as_dict(span.attributes),
                span.start_time_unix_nano,
                span.end_time_unix_nano - span.start_time_unix_nano,
                tuple(child for child in spans if child.parent_span_id == span.span_id),
                (span.trace_id.hex(), span.span_id.hex()),
            )
            for span in roots
        ]
        assert len(spans) == len(roots) + sum(len(call.attempt_spans) for call in found)
        assert len({span.span_id for span in spans}) == len(spans)
    return sorted(found, key=lambda call: call.start)


def _call(
    attributes: dict[str, Any],
    start_ns: int,
    duration_ns: int,
    children: tuple[Any, ...],
    ids: tuple[str, str] | None = None,
) -> SeenCall:
    return SeenCall(
        attributes[c.OUTCOME],
        attributes.get(c.ERROR_CLASSIFIED_AS),
        attributes[c.ATTEMPTS],
        attributes.get(c.BACKOFF_SECONDS, 0.0),
        start_ns / 1e9,
        duration_ns / 1e9,
        attributes.get(c.STREAM_ITEMS),
        attributes.get(c.BREAKER_STATE),
        tuple(
            sorted(
                children,
                key=lambda child: as_dict(child.attributes)[c.ATTEMPT_NUMBER],
            )
        ),
        ids,
    )


Samples = dict[str, Counter[tuple[str, ...]]]


def read_metrics() -> Samples:
    """Return what the exposition text says, without zeros: sample name, label values, value.

    Label values come in the order of their names, without those of tool and region.
    """
    found: Samples = defaultdict(Counter)
    text = setup.metrics_text()[0].decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = sorted(sample.labels.items())
            key = tuple(value for name, value in labels if name not in ("tool", "region"))
            counts = found[sample.name]
            if sample.value:
                counts[key] += sample.value  # type: ignore[assignment]
    return found


def series_of_tools() -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the counters' series that exist for the tools."""
    text = setup.metrics_text()[0].decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.type == "counter" and family.name.startswith(("fuseboard_tool", "fuseboard_lay"))
    }


@contextlib.contextmanager
def telemetry(receiver: Receiver, path: str) -> Iterator[None]:
    """Run the real telemetry by one of the paths, all of its settings its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "FUSEBOARD_"))}
    receiver.bodies.clear()
    with (
        mock.patch.dict(os.environ, {**kept, **_PATH_SETTINGS[path]}, clear=True),
        mock.patch.object(process_exit, "install"),
    ):
        setup.init(
            "properties", endpoint=receiver.url, registry=CollectorRegistry(), log_calls="all"
        )
    # The export waits in real time: in the world's, a batch may be years old when it is sent.
    assembly = setup._STATE.assembly
    assert assembly is not None
    assert assembly.pipeline is not None
    assembly.pipeline._monotonic = time.monotonic
    try:
        yield
    finally:
        setup.shutdown(30.0)
        setup._STATE.assembly = None
        setup._STATE.is_exit_installed = False
        RUNTIME.telemetry = NullTelemetry()
        trace._TRACER_PROVIDER = None
