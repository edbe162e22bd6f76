"""The stock OpenTelemetry exporter against every state of the store."""

from __future__ import annotations

import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fuseboard import conventions as c
from fuseboard_collector.store import Store, open_store

EVERYTHING = {"since": None, "until": None}


@pytest.fixture
def spans() -> Any:
    """Ten finished spans of calls."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for _ in range(10):
        with provider.get_tracer("fuseboard").start_as_current_span("execute_tool search") as span:
            span.set_attributes(
                {
                    c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL,
                    c.GEN_AI_TOOL_NAME: "search",
                    c.OUTCOME: "ok",
                    c.ATTEMPTS: 1,
                }
            )
    provider.shutdown()
    return memory.get_finished_spans()


@pytest.fixture
def exporter() -> Iterator[Callable[..., SpanExporter]]:
    made: list[SpanExporter] = []

    def make(url: str, **options: Any) -> SpanExporter:
        made.append(OTLPSpanExporter(endpoint=f"{url}/v1/traces", **options))
        return made[-1]

    yield make
    for item in made:
        item.shutdown()


@pytest.mark.parametrize("compression", list(Compression))
def test_hc_35_the_stock_exporter_with_every_compression(
    store: Store, collector: str, spans: Any, exporter: Any, compression: Compression
) -> None:
    if compression is Compression.Deflate:
        expected, rows = SpanExportResult.FAILURE, 0
    else:
        expected, rows = SpanExportResult.SUCCESS, 10
    assert exporter(collector, compression=compression).export(spans) is expected
    assert store.query("export_calls", EVERYTHING).num_rows == rows


def test_hc_36_a_busy_store_is_a_503_and_everything_arrives_once_it_recovers(
    store: Store, collector: str, spans: Any, exporter: Any, until: Callable[..., None]
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def block(_connection: object) -> None:
        entered.set()
        assert go_on.wait(30)

    blocker = threading.Thread(target=store._command, args=(block,))
    blocker.start()
    assert entered.wait(10)
    store._writer._queue_rows = 10
    waiting = threading.Thread(target=exporter(collector).export, args=(spans[:5],))
    waiting.start()
    until(lambda: store.queue_rows() == 5, "the first request to queue")
    results: list[Any] = []
    client = threading.Thread(target=lambda: results.append(exporter(collector).export(spans)))
    client.start()
    until(lambda: store.stats.get("refused_requests", "503") >= 1, "a refusal")
    go_on.set()
    for thread in (blocker, waiting, client):
        thread.join(30)
    assert results == [SpanExportResult.SUCCESS]
    assert store.query("export_calls", EVERYTHING).num_rows == 10


def test_hc_36_a_busy_store_says_when_to_come_back(
    store: Store, collector: str, monkeypatch: pytest.MonkeyPatch, otlp: Any
) -> None:
    monkeypatch.setattr(store._writer, "_queue_rows", -1)
    monkeypatch.setattr(store._writer, "_waiting_rows", 1)
    request = urllib.request.Request(
        f"{collector}/v1/traces", otlp.json(otlp.traces(otlp.span())),
        {"content-type": "application/json"},
    )  # fmt: skip
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    with caught.value as answer:
        assert (answer.code, answer.headers["retry-after"]) == (503, "1")
        assert b'"code": 14' in answer.read()


def test_hc_40_a_third_process_holds_the_file_and_data_arrive_after_it_lets_go(
    tmp_path: Path, hold: Any, serve: Any, spans: Any, exporter: Any, until: Callable[..., None]
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    open_store(path).close()
    holder = hold(path)
    store = open_store(path, wait=True)
    with serve(store) as url:
        results: list[Any] = []
        client = threading.Thread(target=lambda: results.append(exporter(url).export(spans)))
        client.start()
        until(lambda: store.stats.get("refused_requests", "503") >= 1, "a refusal")
        holder.communicate()
        client.join(30)
        assert results == [SpanExportResult.SUCCESS]
        assert store.query("export_calls", EVERYTHING).num_rows == 10
    store.close()


def test_hc_38_the_same_request_from_many_clients_at_once(
    store: Store, collector: str, spans: Any, exporter: Any
) -> None:
    results: list[Any] = []

    def work() -> None:
        results.extend(exporter(collector).export(spans) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [SpanExportResult.SUCCESS] * 30
    assert store.query("export_calls", EVERYTHING).num_rows == 10


def test_a_client_that_hangs_up_leaves_the_server_well(
    store: Store, collector: str, spans: Any, exporter: Any
) -> None:
    host, port = collector.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
            b"content-length: 1000\r\n\r\nhalf"
        )
    assert exporter(collector).export(spans) is SpanExportResult.SUCCESS


def test_bodies_that_trickle_in_count_against_the_memory_for_bodies(
    store: Store, collector: str, spans: Any, exporter: Any, monkeypatch: pytest.MonkeyPatch,
    until: Callable[..., None],
) -> None:  # fmt: skip
    module = sys.modules["fuseboard_collector.receiver.intake"]
    monkeypatch.setattr(module, "MAX_BYTES_IN_FLIGHT", 100_000)
    host, port = collector.removeprefix("http://").split(":")
    head = (
        b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
        b"content-length: 1000000\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=20) as slow:
        slow.sendall(head + b"x" * 90_000)

        def is_refused() -> bool:
            request = urllib.request.Request(
                f"{collector}/v1/traces", b"x" * 20_000,
                {"content-type": "application/x-protobuf"},
            )  # fmt: skip
            try:
                urllib.request.urlopen(request, timeout=10)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code == 503
            return False

        until(is_refused, "a refusal while a slow client fills the memory")
        assert exporter(collector).export(spans) is SpanExportResult.SUCCESS, "a small one fits"
    until(lambda: not is_refused(), "room again once the slow client has gone")
