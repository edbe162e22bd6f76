from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
import tracemalloc
import urllib.request
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.testclient import TestClient

from fuseboard_collector.receiver.body import MAX_BODY, Encoding
from fuseboard_collector.receiver.errors import MalformedError, TooLargeError
from fuseboard_collector.receiver.intake import MAX_UNPACKED
from fuseboard_collector.receiver.unpacking import MAX_MEMBERS, unpack

PB = "application/x-protobuf"
JSON = "application/json"
Rows = Callable[[str], list[dict[str, Any]]]
LIMIT = MAX_UNPACKED[Encoding.PROTOBUF]
SPANS = ("b7ad6b7169203331", "b7ad6b7169203332")


def two_members(otlp: Any) -> bytes:
    """Two requests, each in a gzip member of its own: protobuf messages may be concatenated."""
    bodies = (otlp.protobuf(otlp.traces(otlp.span(span=span))) for span in SPANS)
    return b"".join(gzip.compress(body) for body in bodies)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_hc_35_gzip_of_several_members_is_read_to_its_end(
    client: TestClient, otlp: Any, export: Rows, encoding: str
) -> None:
    headers = {"content-type": PB, "content-encoding": encoding}
    answer = client.post("/v1/traces", content=two_members(otlp), headers=headers)
    assert answer.status_code == 200
    assert {row["span_id"] for row in export("calls")} == set(SPANS)


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd, gzip", "nonsense"])
def test_hc_35_an_unsupported_encoding_is_never_parsed_as_if_plain(
    client: TestClient, otlp: Any, export: Rows, encoding: str
) -> None:
    body = otlp.protobuf(otlp.traces(otlp.span()))
    headers = {"content-type": PB, "content-encoding": encoding}
    answer = client.post("/v1/traces", content=body, headers=headers)
    assert answer.status_code == 415
    assert encoding in Status.FromString(answer.content).message
    assert export("calls") == []


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        " application/json ",
    ],
)
def test_hc_35_parameters_of_the_content_type_do_not_matter(
    client: TestClient, otlp: Any, export: Rows, kind: str
) -> None:
    body = otlp.json(otlp.traces(otlp.span()))
    assert client.post("/v1/traces", content=body, headers={"content-type": kind}).is_success
    assert len(export("calls")) == 1


@pytest.mark.parametrize("kind", ["text/plain", "application/grpc", "application/jsonx", ""])
def test_hc_35_an_unknown_content_type_is_refused(client: TestClient, kind: str) -> None:
    answer = client.post("/v1/traces", content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415
    assert "application/x-protobuf" in answer.json()["message"]


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/v1/metrics"])
@pytest.mark.parametrize("kind", [PB, "application/json"])
@pytest.mark.parametrize("packed", [True, False])
def test_hc_35_an_empty_request_is_a_success(
    client: TestClient, path: str, kind: str, packed: bool
) -> None:
    headers = {"content-type": kind, **({"content-encoding": "gzip"} if packed else {})}
    body = gzip.compress(b"") if packed else b""
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.content == (b"" if kind == PB else b"{}")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x0a\xff", id="truncated"),
        pytest.param(b"not protobuf at all", id="text"),
        pytest.param(b"\x00" * 50, id="zeros"),
    ],
)
def test_malformed_protobuf_is_a_400_with_a_status(client: TestClient, body: bytes) -> None:
    answer = client.post("/v1/traces", content=body, headers={"content-type": PB})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == PB
    status = Status.FromString(answer.content)
    assert (status.code, "ExportTraceServiceRequest" in status.message) == (3, True)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="truncated"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"7", id="number"),
        pytest.param(b'{"resourceSpans": {}, "resourceSpans": 3}', id="number-for-list"),
        pytest.param(b'{"resourceSpans": [{"scopeSpans": [7]}]}', id="number-for-object"),
        pytest.param(b'{"resourceSpans": [{"resource": []}, 3]}', id="mixed"),
        pytest.param(b"[" * 200_000, id="deep"),
    ],
)
def test_malformed_json_is_a_400_with_a_status(client: TestClient, body: bytes) -> None:
    answer = client.post("/v1/traces", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["code"] == 3
    assert answer.json()["message"]


@pytest.mark.parametrize("cut", [1, 8, 20])
def test_a_truncated_gzip_body_is_a_400(client: TestClient, otlp: Any, cut: int) -> None:
    body = gzip.compress(otlp.protobuf(otlp.traces(otlp.span())))[:-cut]
    headers = {"content-type": PB, "content-encoding": "gzip"}
    answer = client.post("/v1/traces", content=body, headers=headers)
    assert answer.status_code == 400
    assert "gzip" in Status.FromString(answer.content).message


def test_a_damaged_gzip_body_is_a_400(client: TestClient) -> None:
    headers = {"content-type": PB, "content-encoding": "gzip"}
    assert client.post("/v1/traces", content=b"plain", headers=headers).status_code == 400
    trailing = gzip.compress(b"") + b"garbage"
    assert client.post("/v1/traces", content=trailing, headers=headers).status_code == 400


def test_a_body_over_the_limit_is_a_413(client: TestClient) -> None:
    headers = {"content-type": PB}
    answer = client.post("/v1/traces", content=b"x" * (MAX_BODY + 1), headers=headers)
    assert answer.status_code == 413
    assert "16 MiB" in Status.FromString(answer.content).message


def test_a_body_over_the_limit_without_a_length_is_a_413(client: TestClient) -> None:
    chunks = (b"x" * (1 << 20) for _ in range(40))
    answer = client.post("/v1/traces", content=chunks, headers={"content-type": PB})
    assert answer.status_code == 413


def test_a_decompression_bomb_is_a_413_and_costs_no_more_than_the_limit() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = b"\0" * (1 << 20)
    bomb = b"".join(packer.compress(zeros) for _ in range(1024)) + packer.flush()
    assert len(bomb) < MAX_BODY
    tracemalloc.start()
    with pytest.raises(TooLargeError, match="32 MiB"):
        unpack(bomb, LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * LIMIT


def test_a_default_batch_at_our_own_caps_stays_below_the_limit(otlp: Any) -> None:
    big = {"traceId": "ab" * 16, "spanId": "cd" * 8}
    attributes = {f"attribute.{n}": "x" * 512 for n in range(40)}
    spans = [otlp.span(attributes=attributes, **big) for _ in range(512)]
    assert len(otlp.protobuf(otlp.traces(*spans))) < MAX_BODY


def test_unpacking_gives_back_what_was_packed() -> None:
    data = bytes(range(256)) * 20_000
    assert unpack(gzip.compress(data), LIMIT) == data
    assert unpack(gzip.compress(data[:7]) + gzip.compress(data[7:]), LIMIT) == data
    assert unpack(gzip.compress(data) + b"\0" * 512, LIMIT) == data
    with pytest.raises(TooLargeError):
        unpack(gzip.compress(data), len(data) - 1)
    assert unpack(gzip.compress(data), len(data)) == data
    with pytest.raises(MalformedError):
        unpack(gzip.compress(data)[:-1], LIMIT)


def test_rejected_spans_are_counted_in_a_partial_success(
    client: TestClient, otlp: Any, export: Rows
) -> None:
    spans = [otlp.span(), otlp.span(trace="00" * 16), otlp.span(span="00" * 8)]
    document = otlp.traces(*spans)
    answer = client.post(
        "/v1/traces", content=otlp.protobuf(document), headers={"content-type": PB}
    )
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, partial.rejected_spans) == (200, 2)
    assert "bad trace_id" in partial.error_message
    assert "bad span_id" in partial.error_message
    answer = client.post(
        "/v1/traces", content=json.dumps(document), headers={"content-type": "application/json"}
    )
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "2"
    assert len(export("calls")) == 1


def test_other_methods_are_refused(client: TestClient) -> None:
    assert client.get("/v1/traces").status_code == 405


def test_metrics_are_counted_and_not_stored(client: TestClient, store: Any) -> None:
    document = {
        "resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "a"}, {"name": "b"}]}]}]
    }
    answer = client.post("/v1/metrics", json=document)
    assert (answer.status_code, answer.json()) == (200, {})
    assert store.stats.get("ignored_metrics") == 2


def test_thousands_of_members_cost_no_more_than_their_bytes() -> None:
    """zlib copies all that follows a member: done naively, this takes a minute."""
    rest = os.urandom(8 * 1024 * 1024)
    began = time.monotonic()
    members = gzip.compress(b"x") * (MAX_MEMBERS - 1)
    assert unpack(members + gzip.compress(rest, 0), LIMIT) == b"x" * (MAX_MEMBERS - 1) + rest
    with pytest.raises(TooLargeError, match="members"):
        unpack(gzip.compress(b"") * 400_000, LIMIT)
    assert time.monotonic() - began < 10


def test_large_bodies_are_decoded_one_at_a_time_and_small_ones_pass(
    store: Any, collector: str, otlp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["fuseboard_collector.receiver.intake"]
    monkeypatch.setattr(module, "LARGE_BODY", 5000)
    decode = module.otlp_json.decode_traces
    at_once: Counter[bool] = Counter()
    most: Counter[bool] = Counter()
    small_passed = threading.Event()
    lock = threading.Lock()

    def watched(body: bytes) -> Any:
        is_large = len(body) > 5000
        with lock:
            at_once[is_large] += 1
            most[is_large] = max(most[is_large], at_once[is_large])
        if is_large:
            assert small_passed.wait(20)
        try:
            return decode(body)
        finally:
            with lock:
                at_once[is_large] -= 1

    monkeypatch.setattr(module.otlp_json, "decode_traces", watched)

    def post(number: int, padding: int) -> int:
        span = otlp.span(span=f"{number:016x}", name="x" * padding)
        body = gzip.compress(otlp.json(otlp.traces(span)))
        headers = {"content-type": JSON, "content-encoding": "gzip"}
        request = urllib.request.Request(f"{collector}/v1/traces", body, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)

    with ThreadPoolExecutor(8) as pool:
        large = [pool.submit(post, number, 10_000) for number in range(1, 6)]
        assert post(99, 1) == 200
        small_passed.set()
        assert [one.result() for one in large] == [200] * 5
    assert most[True] == 1
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 6
