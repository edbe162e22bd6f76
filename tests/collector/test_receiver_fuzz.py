"""Whatever comes in: 200, or a 4xx with the protocol's Status; never a 5xx, never a hang."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from grpc import StatusCode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    KeyValue,
    KeyValueList,
)
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.collector.grpc_client import Client, serving_grpc

from fuseboard import conventions as c
from fuseboard_collector import receiver
from fuseboard_collector.receiver.intake import Signal
from fuseboard_collector.receiver.otlp_json import decode_traces as decode_json
from fuseboard_collector.store import open_store

PB, JSON = "application/x-protobuf", "application/json"
PATHS = st.sampled_from(["/v1/traces", "/v1/logs", "/v1/metrics"])
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEEDS = [
    path.read_bytes() for path in sorted((Path(__file__).parents[1] / "data" / "otlp").glob("*.pb"))
]


class Both(TestClient):
    """Sends protobuf that is not packed over gRPC as well."""

    grpc: Client


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    store = open_store(tmp_path_factory.mktemp("fuzz") / "f.duckdb")
    with (
        serving_grpc(store) as serving,
        Both(Starlette(routes=[*receiver.routes(store)])) as client,
    ):
        client.grpc = Client(serving.address)
        yield client
        client.grpc.close()
        assert serving.intake._held == 0
    store.close()


def check(client: Both, path: str, body: bytes, kind: str, packed: bool) -> None:
    headers = {"content-type": kind, **({"content-encoding": "gzip"} if packed else {})}
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code in (200, 400, 413), answer.text
    assert answer.headers["content-type"] == kind
    if kind == JSON:
        document = answer.json()
        assert answer.status_code == 200 or {"code", "message"} == document.keys()
    elif answer.status_code != 200:
        assert Status.FromString(answer.content).message
    if kind == PB:
        check_grpc(client, path, body, None if packed else answer.status_code)


GRPC = {200: StatusCode.OK, 400: StatusCode.INVALID_ARGUMENT, 413: StatusCode.RESOURCE_EXHAUSTED}


def check_grpc(client: Both, path: str, body: bytes, http_status: int | None) -> None:
    """The same bytes come to the same over gRPC, where gzip is told by its first bytes."""
    answer = client.grpc.export(body, Signal[path.rpartition("/")[2].upper()])
    assert answer.code in GRPC.values(), answer
    assert answer.retry_after is None
    assert answer.message or answer.code is StatusCode.OK
    if http_status is not None and not body.startswith(b"\x1f\x8b"):
        assert answer.code is GRPC[http_status]


@FUZZ
@given(
    path=PATHS, body=st.binary(max_size=400), kind=st.sampled_from([PB, JSON]), packed=st.booleans()
)
def test_any_bytes(fuzzed: Both, path: str, body: bytes, kind: str, packed: bool) -> None:
    check(fuzzed, path, body, kind, packed)
    check(fuzzed, path, gzip.compress(body), kind, packed=True)


@FUZZ
@given(seed=st.sampled_from(SEEDS), data=st.data())
def test_real_requests_with_damage(fuzzed: Both, seed: bytes, data: st.DataObject) -> None:
    body = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 8))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    check(fuzzed, "/v1/traces", bytes(body), PB, packed=False)


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes", "key", "value",
     "traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "status", "code",
     "events", "stringValue", "intValue", "arrayValue", "kvlistValue", "values", "doubleValue",
     "resourceLogs", "scopeLogs", "logRecords", "eventName", "timeUnixNano", "bytesValue"]
)  # fmt: skip


def shaped(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(children, max_size=3) | st.dictionaries(KEYS, children, max_size=4)


@FUZZ
@given(path=PATHS, document=st.recursive(LEAF, shaped, max_leaves=30))
def test_any_json(fuzzed: Both, path: str, document: Any) -> None:
    check(fuzzed, path, json.dumps(document).encode(), JSON, packed=False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats()
    | st.binary(max_size=9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
NAMES = st.sampled_from(
    ["gen_ai.operation.name", "gen_ai.tool.name", "fuseboard.outcome", "fuseboard.attempts",
     "fuseboard.attempt.number", "error.type", "http.response.status_code", "fuseboard.cost",
     "fuseboard.backoff_seconds", "fuseboard.error.retryable", "cloud.region", "service.name"]
) | st.text(max_size=10)  # fmt: skip


@FUZZ
@given(
    attributes=st.dictionaries(NAMES, VALUES, max_size=8),
    resource=st.dictionaries(NAMES, VALUES, max_size=3),
    is_tool=st.booleans(),
    start=st.integers(0, 2**64 - 1),
    end=st.integers(0, 2**64 - 1),
    name=st.text(max_size=20),
    ids=st.tuples(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1)),
)
def test_a_span_of_any_content_is_stored(
    fuzzed: Both, otlp: Any, attributes: dict[str, Any], resource: dict[str, Any],
    is_tool: bool, start: int, end: int, name: str, ids: tuple[int, int],
) -> None:  # fmt: skip
    if is_tool:
        attributes = {**attributes, "gen_ai.operation.name": "execute_tool"}
    span = otlp.span(
        trace=f"{ids[0]:032x}", span=f"{ids[1]:016x}", attributes=attributes, name=name,
        startTimeUnixNano=start, endTimeUnixNano=end,
    )  # fmt: skip
    document = json.dumps(otlp.traces(span, resource=resource))
    over_grpc = fuzzed.grpc.export(protobuf_of(document))
    assert (over_grpc.code, over_grpc.content) == (StatusCode.OK, b"")
    answer = fuzzed.post("/v1/traces", content=document, headers={"content-type": JSON})
    assert (answer.status_code, answer.json()) == (200, {})


def protobuf_of(document: str) -> bytes:
    """Return a request as protobuf that holds what the decoder of JSON found in it."""
    traces = decode_json(document.encode())
    request = ExportTraceServiceRequest()
    for source, spans in traces.groups:
        group = request.resource_spans.add()
        group.resource.attributes.extend(pairs(source.resource))
        scope = group.scope_spans.add()
        scope.scope.name = source.scope
        for span in spans:
            scope.spans.add(
                trace_id=bytes.fromhex(span.trace_id), span_id=bytes.fromhex(span.span_id),
                name=span.name, attributes=pairs(span.attributes),
                start_time_unix_nano=span.start_ns, end_time_unix_nano=span.end_ns,
            )  # fmt: skip
    return request.SerializeToString()


def pairs(values: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in values.items()]


def any_value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
    return AnyValue() if value is None else AnyValue(string_value=value)


EVENTS = st.sampled_from([c.EVENT_BREAKER_TRANSITION, c.EVENT_HEARTBEAT, c.EVENT_TOOL_CALL, "x"])
EVENT_NAMES = NAMES | st.sampled_from(
    [c.BREAKER_NAME, c.BREAKER_FROM, c.BREAKER_TO, c.BREAKER_CALLS, c.BREAKER_FAILURE_RATIO,
     c.GEN_AI_TOOL_NAME, c.ERROR_CLASSIFIED_AS]
)  # fmt: skip


@FUZZ
@given(
    event=EVENTS,
    attributes=st.dictionaries(EVENT_NAMES, VALUES, max_size=8),
    resource=st.dictionaries(NAMES, VALUES, max_size=3),
    time=st.integers(0, 2**64 - 1),
)
def test_an_event_of_any_content_is_stored_or_rejected_with_a_reason(
    fuzzed: Both, otlp: Any, event: str, attributes: dict[str, Any], resource: dict[str, Any],
    time: int,
) -> None:  # fmt: skip
    document = otlp.logs(event, attributes, resource=resource, timeUnixNano=str(time))
    answer = fuzzed.post("/v1/logs", content=json.dumps(document), headers={"content-type": JSON})
    assert answer.status_code == 200
    partial = answer.json().get("partialSuccess", {})
    assert partial == {} or (partial["rejectedLogRecords"] == "1" and partial["errorMessage"])


def field(number: int, wire: int, content: bytes) -> bytes:
    return bytes([number << 3 | wire]) + content


def nested(children: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Fields of any number that hold messages: the shape of protobuf without its meaning."""
    numbers = st.integers(1, 15)
    inner = st.lists(children, max_size=4).map(b"".join).filter(lambda body: len(body) < 128)
    return st.builds(lambda n, body: field(n, 2, bytes([len(body)]) + body), numbers, inner)


FIELDS = st.recursive(
    st.builds(
        lambda n, raw: field(n, 2, bytes([len(raw)]) + raw),
        st.integers(1, 15),
        st.binary(max_size=16),
    )
    | st.builds(lambda n, v: field(n, 0, bytes([v])), st.integers(1, 15), st.integers(0, 127))
    | st.builds(
        lambda n, raw: field(n, 1, raw), st.integers(1, 15), st.binary(min_size=8, max_size=8)
    ),
    nested,
    max_leaves=20,
)


@FUZZ
@given(path=PATHS, fields=st.lists(FIELDS, max_size=4))
def test_protobuf_of_any_shape(fuzzed: Both, path: str, fields: list[bytes]) -> None:
    check(fuzzed, path, b"".join(fields), PB, packed=False)
