"""OTLP/gRPC: the same answers, limits and durability as over HTTP."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.collector.grpc_client import Answer, Client, Serving, serving_grpc

from fuseboard import conventions as c
from fuseboard_collector.receiver import grpc_server
from fuseboard_collector.receiver import intake as intake_module
from fuseboard_collector.receiver.body import MAX_BODY
from fuseboard_collector.receiver.grpc_server import SERVICES
from fuseboard_collector.receiver.intake import Signal
from fuseboard_collector.store import Store, open_store
from fuseboard_collector.tokens import Token

Rows = Callable[[str], list[dict[str, Any]]]
OK = grpc.StatusCode.OK


@pytest.fixture
def serving(store: Store) -> Iterator[Serving]:
    with serving_grpc(store) as serving:
        yield serving


@pytest.fixture
def client(serving: Serving) -> Iterator[Client]:
    client = Client(serving.address)
    yield client
    client.close()


@pytest.fixture
def traces(otlp: Any) -> bytes:
    return bytes(otlp.protobuf(otlp.traces(otlp.span())))


def test_traces_are_stored_when_the_answer_comes(
    client: Client, traces: bytes, export: Rows
) -> None:
    answer = client.export(traces)
    assert (answer.code, answer.content) == (OK, b"")
    assert [row["tool"] for row in export("calls")] == ["search"]


def test_logs_are_stored_and_metrics_are_counted(
    client: Client, otlp: Any, store: Store, rows: Rows
) -> None:
    beat = otlp.protobuf(otlp.logs(c.EVENT_HEARTBEAT, {}))
    assert client.export(beat, Signal.LOGS).code is OK
    assert len(rows("heartbeats")) == 1
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    assert client.export(request.SerializeToString(), Signal.METRICS).code is OK
    assert store.stats.get("ignored_metrics") == 1


def test_what_can_not_be_stored_is_a_partial_success(
    client: Client, otlp: Any, export: Rows
) -> None:
    body = otlp.protobuf(otlp.traces(otlp.span(), otlp.span(trace="00" * 16)))
    answer = ExportTraceServiceResponse.FromString(client.export(body).content)
    assert answer.partial_success.rejected_spans == 1
    assert "bad trace_id" in answer.partial_success.error_message
    assert len(export("calls")) == 1


def test_an_incomplete_log_event_is_a_partial_success(client: Client, otlp: Any) -> None:
    body = otlp.protobuf(otlp.logs(c.EVENT_BREAKER_TRANSITION, {}))
    answer = ExportLogsServiceResponse.FromString(client.export(body, Signal.LOGS).content)
    assert answer.partial_success.rejected_log_records == 1


@pytest.mark.parametrize("signal", list(Signal))
def test_what_is_no_request_is_an_invalid_argument(client: Client, signal: Signal) -> None:
    answer = client.export(b"\x0a\xff", signal)
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert f"Export{signal.word.title()}".removesuffix("s") in answer.message
    assert answer.retry_after is None


@pytest.mark.parametrize("signal", list(Signal))
def test_an_empty_request_is_a_success(client: Client, signal: Signal) -> None:
    assert client.export(b"", signal).code is OK


def test_gzip_is_unpacked(client: Client, traces: bytes, export: Rows) -> None:
    many = traces + b"".join([traces] * 50)  # small messages are sent as they are
    assert client.export(many, compression=grpc.Compression.Gzip).code is OK
    assert len(export("calls")) == 1


def test_damaged_gzip_is_an_invalid_argument(client: Client, traces: bytes) -> None:
    answer = client.export(gzip.compress(traces)[:-9])
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "gzip" in answer.message


def test_a_compression_that_is_not_spoken_is_refused_by_name(client: Client, traces: bytes) -> None:
    answer = client.export(traces * 50, compression=grpc.Compression.Deflate)
    assert answer.code is grpc.StatusCode.UNIMPLEMENTED
    assert "deflate" in answer.message


def test_a_decompression_bomb_is_refused_and_not_to_be_sent_again(client: Client) -> None:
    answer = client.export(gzip.compress(bytes(64 << 20)))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "32 MiB" in answer.message
    assert answer.retry_after is None


def test_a_message_over_the_limit_is_refused_with_the_limit(client: Client) -> None:
    answer = client.export(bytes(MAX_BODY + 1))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(MAX_BODY) in answer.message
    assert answer.retry_after is None


def test_a_full_queue_says_when_to_come_back(
    client: Client, traces: bytes, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store._writer, "_queue_rows", -1)
        patched.setattr(store._writer, "_waiting_rows", 1)
        answer = client.export(traces)
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (answer.retry_after, answer.status and answer.status.code) == (1, 8)
    assert "wait to be stored" in answer.message
    assert client.export(traces).code is OK


def test_memory_for_bodies_is_shared_and_given_back(
    serving: Serving, client: Client, traces: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(intake_module, "MAX_BYTES_IN_FLIGHT", 10)
        answer = client.export(traces)
        assert (answer.code, answer.retry_after) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 1)
    assert client.export(traces).code is OK
    assert serving.intake._held == 0


def test_hc_40_a_store_that_another_process_holds_is_asked_again(
    tmp_path: Path, hold: Any, traces: bytes, until: Callable[..., None]
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    open_store(path).close()
    holder = hold(path)
    store = open_store(path, wait=True)
    with serving_grpc(store) as serving:
        client = Client(serving.address)
        refused = client.export(traces)
        assert (refused.code, refused.retry_after) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 1)
        assert str(holder.pid) in refused.message
        assert client.call("/grpc.health.v1.Health/Check", b"").content == b"\x08\x02"
        holder.communicate()
        until(lambda: client.export(traces).code is OK, "the store to be had")
        client.close()
    store.close()


def test_a_token_is_asked_for(store: Store, traces: bytes, export: Rows) -> None:
    with serving_grpc(store, Token("s3cret")) as serving:
        client = Client(serving.address)
        for metadata in (
            [], [("authorization", "Bearer wrong")], [("authorization", "Basic s3cret")],
            [("authorization", "Bearer s3cret"), ("authorization", "Bearer s3cret")],
        ):  # fmt: skip
            answer = client.export(traces, metadata=metadata)
            assert answer.code is grpc.StatusCode.UNAUTHENTICATED
            assert "authorization: Bearer" in answer.message
            assert "s3cret" not in answer.message
        assert export("calls") == []
        answer = client.export(traces, metadata=[("authorization", "Bearer s3cret")])
        assert answer.code is OK
        client.close()
    assert len(export("calls")) == 1


class Silent:
    """A call that is begun and whose message does not come."""

    def __init__(self, address: str) -> None:
        self._over = threading.Event()
        self._channel = grpc.insecure_channel(address)
        export = self._channel.stream_unary(f"/{SERVICES[Signal.TRACES]}/Export")
        self._call = export.future(self._messages(), timeout=30)

    def _messages(self) -> Iterator[bytes]:
        self._over.wait(30)
        yield b""

    def code(self) -> grpc.StatusCode:
        code = self._call.code()
        assert isinstance(code, grpc.StatusCode)
        return code

    def end(self) -> grpc.StatusCode:
        self._over.set()
        code = self.code()
        self._channel.close()
        return code


def test_nothing_is_read_of_a_call_without_the_token(store: Store) -> None:
    with serving_grpc(store, Token("s3cret")) as serving:
        silent = Silent(serving.address)
        assert silent.code() is grpc.StatusCode.UNAUTHENTICATED
        silent.end()


def test_few_messages_are_read_at_once_and_the_others_are_asked_again(
    store: Store, traces: bytes, monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    monkeypatch.setattr(grpc_server, "READING_AT_ONCE", 2)
    monkeypatch.setattr(grpc_server, "TURN_SECONDS", 0.1)
    with serving_grpc(store) as serving:
        client = Client(serving.address)
        silent = [Silent(serving.address) for _ in range(2)]
        until(serving.receiver._reading.locked, "both to be read")
        answer = client.export(traces)
        assert (answer.code, answer.retry_after) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 1)
        assert [one.end() for one in silent] == [OK, OK]
        assert client.export(traces).code is OK
        client.close()


def test_a_message_that_does_not_come_is_given_up(
    serving: Serving, client: Client, traces: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(grpc_server, "BODY_SECONDS", 0.1)
        silent = Silent(serving.address)
        assert silent.code() is grpc.StatusCode.UNAVAILABLE
        silent.end()
    assert client.export(traces).code is OK
    assert serving.receiver._reading._value == grpc_server.READING_AT_ONCE


def test_a_call_without_a_message_is_an_invalid_argument(serving: Serving) -> None:
    with grpc.insecure_channel(serving.address) as channel:
        export = channel.stream_unary(f"/{SERVICES[Signal.TRACES]}/Export")
        with pytest.raises(grpc.RpcError) as caught:
            export(iter(()), timeout=30)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_health_is_answered_and_other_methods_are_unknown(client: Client) -> None:
    assert client.call("/grpc.health.v1.Health/Check", b"").content == b"\x08\x01"
    assert client.call("/x.Y/Z", b"").code is grpc.StatusCode.UNIMPLEMENTED


def test_a_stop_finishes_what_was_taken_and_refuses_the_rest(
    serving: Serving, client: Client, traces: bytes, store: Store, export: Rows,
    until: Callable[..., None],
) -> None:  # fmt: skip
    entered, go_on = threading.Event(), threading.Event()

    def block(_connection: object) -> None:
        entered.set()
        assert go_on.wait(30)

    with ThreadPoolExecutor(3) as pool:
        pool.submit(store._command, block)
        assert entered.wait(10)
        answer = pool.submit(client.export, traces)
        until(lambda: store.queue_rows() == 1, "the request to queue")
        stopped = serving.stop(20)
        until(lambda: serving.intake.is_stopping, "the stop to begin")
        late = Client(serving.address)
        refused = pool.submit(late._channel.unary_unary("/x/Y"), traces, timeout=5)
        assert isinstance(refused.exception(20), grpc.RpcError)
        late.close()
        assert not answer.done()
        go_on.set()
        assert answer.result(20).code is OK
        stopped.result(20)
    assert len(export("calls")) == 1


def test_what_the_stop_can_not_wait_for_is_unavailable_and_kept_by_its_sender(
    serving: Serving, client: Client, traces: bytes, store: Store, until: Callable[..., None]
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def block(_connection: object) -> None:
        entered.set()
        assert go_on.wait(30)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(store._command, block)
        assert entered.wait(10)
        answer = pool.submit(client.export, traces)
        until(lambda: store.queue_rows() == 1, "the request to queue")
        serving.stop(0.1).result(20)
        code = answer.result(20).code
        go_on.set()
    assert code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def test_hc_38_the_same_request_over_both_protocols_is_stored_once(
    store: Store, client: Client, collector: str, traces: bytes, export: Rows
) -> None:
    import urllib.request

    def over_http() -> int:
        request = urllib.request.Request(
            f"{collector}/v1/traces", traces, {"content-type": "application/x-protobuf"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)

    with ThreadPoolExecutor(8) as pool:
        ours: list[Any] = [pool.submit(client.export, traces) for _ in range(8)]
        theirs = [pool.submit(over_http) for _ in range(8)]
        assert [one.result().code for one in ours] == [OK] * 8
        assert [one.result() for one in theirs] == [200] * 8
    assert len(export("calls")) == 1


def test_a_port_in_use_is_an_error(serving: Serving, store: Store) -> None:
    import asyncio

    from fuseboard_collector.receiver import GrpcReceiver

    async def again() -> None:
        await GrpcReceiver(serving.intake).start(serving.address)

    with pytest.raises(OSError, match=serving.address):
        asyncio.run_coroutine_threadsafe(again(), serving.loop).result(20)


def test_garbage_on_the_port_disturbs_nobody(
    serving: Serving, client: Client, traces: bytes
) -> None:
    host, port = serving.address.split(":")
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 40, b"PRI * HTTP/2.0\r\n\r\nSM"):
        with socket.create_connection((host, int(port)), timeout=10) as link:
            link.sendall(garbage)
            answer: Answer = client.export(traces)
            assert answer.code is OK
