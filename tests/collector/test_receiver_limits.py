"""Limits of one request: what a default batch never reaches, and what nobody gets past."""

from __future__ import annotations

import gzip
import json
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from starlette.testclient import TestClient

from fuseboard import conventions as c
from fuseboard_collector.receiver import body as body_module
from fuseboard_collector.receiver.body import MAX_BODY
from fuseboard_collector.receiver.errors import MalformedError
from fuseboard_collector.receiver.limits import MAX_EVENTS, MAX_RECORDS
from fuseboard_collector.receiver.unpacking import Packing, unpack
from fuseboard_collector.store import Store

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PB = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
PACKED = {"content-encoding": "gzip"}
LIMITS_OF_THE_SDK = 128  # attributes of a span, OpenTelemetry's default


def test_hc_36_a_default_batch_with_every_attribute_at_its_limit_is_taken(
    client: TestClient, otlp: Any, export: Any
) -> None:
    """512 spans with the most attributes that the SDK keeps, text at the shim's limit."""
    texts = {f"attribute.{i}": "x" * 60 for i in range(LIMITS_OF_THE_SDK - 8)}
    full = {
        **texts, c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL, c.GEN_AI_TOOL_NAME: "t" * 128,
        c.OUTCOME: "error", c.ERROR_TYPE: "E" * 256, "message": "m" * c.MAX_MESSAGE_LENGTH,
    }  # fmt: skip
    spans = [
        otlp.span(span=f"{number:016x}", attributes=full,
                  status={"code": 2, "message": "m" * c.MAX_MESSAGE_LENGTH})
        for number in range(1, 513)
    ]  # fmt: skip
    document = otlp.traces(*spans)
    as_json, as_protobuf = otlp.json(document), otlp.protobuf(document)
    assert len(as_protobuf) < len(as_json) < MAX_BODY
    for content, headers in ((as_json, JSON), (as_protobuf, PB)):
        assert client.post("/v1/traces", content=content, headers=headers).status_code == 200
    assert len(export("calls")) == 512


def many_spans(count: int) -> bytes:
    span = b"\x12\x00"  # field 2 of scope_spans: a span without anything
    scope = varint_field(b"\x12", span * count)
    return varint_field(b"\x0a", scope)


def varint_field(tag: bytes, content: bytes) -> bytes:
    size, out = len(content), bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return tag + bytes([*out, size]) + content


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(many_spans(MAX_RECORDS), id="spans"),
        pytest.param(many_spans(7_000_000), id="millions of spans"),
        pytest.param(b"\x0a\x00" * (MAX_RECORDS + 1), id="groups"),
        pytest.param(varint_field(b"\x0a", b"\x12\x00" * MAX_RECORDS), id="scopes"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_records_are_counted_however_small_they_are(
    client: TestClient, path: str, body: bytes
) -> None:
    answer = client.post(path, content=body, headers=PB)
    assert answer.status_code == 413
    assert f"{MAX_RECORDS} records" in Status.FromString(answer.content).message


@pytest.mark.parametrize("spans", [1, 4], ids=["in one span", "over spans"])
@pytest.mark.parametrize("extra", [b"", b"\x6a\x00"], ids=["usual", "with a link"])
def test_events_are_counted_however_small_they_are(
    client: TestClient, spans: int, extra: bytes
) -> None:
    """Millions fit into a body, and an object of each takes a hundred times its bytes."""
    ids = varint_field(b"\x0a", b"t" * 16) + varint_field(b"\x12", b"s" * 8)

    def body(events: int) -> bytes:
        span = varint_field(b"\x12", ids + b"\x5a\x00" * (events // spans) + extra)
        return varint_field(b"\x0a", varint_field(b"\x12", span * spans))

    answer = client.post("/v1/traces", content=body(MAX_EVENTS + spans), headers=PB)
    assert answer.status_code == 413
    assert f"{MAX_EVENTS} events" in Status.FromString(answer.content).message
    assert client.post("/v1/traces", content=body(1_000), headers=PB).status_code == 200


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/traces", ("resourceSpans", "scopeSpans", "spans")),
        ("/v1/logs", ("resourceLogs", "scopeLogs", "logRecords")),
    ],
)
def test_records_of_json_are_counted_too(
    client: TestClient, path: str, names: tuple[str, str, str]
) -> None:
    groups, scopes, records = names
    for document in (
        {groups: [{scopes: [{records: [{}] * MAX_RECORDS}]}]},
        {groups: [{scopes: [{}] * MAX_RECORDS}]},
        {groups: [{}] * (MAX_RECORDS + 1)},
    ):
        body = gzip.compress(json.dumps(document).encode(), 1)
        answer = client.post(path, content=body, headers={**JSON, **PACKED})
        assert answer.status_code == 413
        assert f"{MAX_RECORDS} records" in answer.json()["message"]


def test_as_many_records_as_allowed_are_taken(client: TestClient) -> None:
    answer = client.post("/v1/traces", content=many_spans(MAX_RECORDS - 2), headers=PB)
    assert answer.status_code == 200


def test_a_body_that_does_not_become_complete_is_given_up(
    store: Store, collector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setattr(body_module, "BODY_SECONDS", 0.3)
    host, port = collector.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as slow:
        slow.sendall(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        answer = slow.recv(1000)
    assert b" 408 " in answer.splitlines()[0]
    assert store.stats.get("refused_requests", "408") == 1


def test_zstd_is_read_with_the_same_limits(client: TestClient, otlp: Any, export: Any) -> None:
    import pyarrow as pa

    codec = pa.Codec("zstd")
    good = codec.compress(otlp.protobuf(otlp.traces(otlp.span())), asbytes=True)
    headers = {**PB, "content-encoding": "zstd"}

    def status(body: bytes) -> int:
        return client.post("/v1/traces", content=body, headers=headers).status_code

    assert status(good) == 200
    assert len(export("calls")) == 1
    assert status(good + good) == 200, "several frames are one body"
    assert status(b"") == 200
    assert status(good[:-3]) == 400
    assert status(b"nonsense") == 400
    assert status(codec.compress(bytes(64 << 20), asbytes=True)) == 413
    assert status(codec.compress(b"", asbytes=True) * 5_000 + good) == 200
    assert status(codec.compress(b"", asbytes=True) * 20_000 + good) == 413, "as of gzip's members"


def test_a_zstd_frame_whose_piece_ends_with_the_input_given_is_read_on() -> None:
    """The first piece is full, and all input that was given is used up, in the same step."""

    def block(kind: int, size: int, content: bytes, *, last: bool = False) -> bytes:
        return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content

    raw = 16_384 - 6 - 35
    frame = b"\x28\xb5\x2f\xfd\x00\x50"
    frame += block(1, 131_072, b"a") * 7
    frame += block(0, raw, b"b" * raw)
    frame += block(1, 131_072 - raw, b"c")
    frame += block(0, 10, b"d" * 10, last=True)
    assert len(unpack(frame, 4 << 20, Packing.ZSTD)) == (1 << 20) + 10
    with pytest.raises(MalformedError, match="too early"):
        unpack(frame[:-12], 4 << 20, Packing.ZSTD)


def test_a_zstd_body_that_wants_a_large_window_is_refused() -> None:
    windows = {zstd.CompressionParameter.window_log: 24}
    packer = zstd.ZstdCompressor(options=windows)
    body = packer.compress(bytes(20 << 20)) + packer.flush()
    with pytest.raises(MalformedError, match=r"window of more than 8 MiB.*at most 23"):
        unpack(body, 64 << 20, Packing.ZSTD)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("packing", [Packing.GZIP, Packing.ZSTD])
def test_damaged_bodies_leave_no_memory_behind(packing: Packing, otlp: Any) -> None:
    """One decompressor kept some kilobytes of each, for ever."""
    plain = otlp.protobuf(otlp.traces(otlp.span())) * 20
    whole = gzip.compress(plain) if packing is Packing.GZIP else zstd.compress(plain)

    def refuse(times: int) -> None:
        for number in range(times):
            damaged = bytearray(whole)
            damaged[len(whole) - 1 - number % (len(whole) // 2)] ^= 0x55
            with suppress(MalformedError):
                unpack(bytes(damaged), 1 << 20, packing)

    refuse(2_000)
    before = resident_bytes()
    refuse(20_000)
    assert resident_bytes() - before < 20_000 * 400


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("container", [b"[]", b"{}"])
def test_json_of_nothing_but_containers_is_refused_before_it_is_read(
    client: TestClient, container: bytes
) -> None:
    body = b'{"x": [' + b",".join([container] * 1_000_000) + b"]}"
    answer = client.post("/v1/metrics", content=body, headers=JSON)
    assert answer.status_code == 413
    assert "objects and lists" in answer.json()["message"]
