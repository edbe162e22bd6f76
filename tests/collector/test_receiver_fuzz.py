"""Whatever comes in: 200, or a 4xx with the protocol's Status; never a 5xx, never a hang."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fuseboard_collector import receiver
from fuseboard_collector.store import open_store

PB, JSON = "application/x-protobuf", "application/json"
PATHS = st.sampled_from(["/v1/traces", "/v1/logs", "/v1/metrics"])
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEEDS = [
    path.read_bytes() for path in sorted((Path(__file__).parents[1] / "data" / "otlp").glob("*.pb"))
]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    store = open_store(tmp_path_factory.mktemp("fuzz") / "f.duckdb")
    with TestClient(Starlette(routes=[*receiver.routes(store)])) as client:
        yield client
    store.close()


def check(client: TestClient, path: str, body: bytes, kind: str, packed: bool) -> None:
    headers = {"content-type": kind, **({"content-encoding": "gzip"} if packed else {})}
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code in (200, 400, 413), answer.text
    assert answer.headers["content-type"] == kind
    if kind == JSON:
        document = answer.json()
        assert answer.status_code == 200 or {"code", "message"} == document.keys()
    elif answer.status_code != 200:
        assert Status.FromString(answer.content).message


@FUZZ
@given(
    path=PATHS, body=st.binary(max_size=400), kind=st.sampled_from([PB, JSON]), packed=st.booleans()
)
def test_any_bytes(fuzzed: TestClient, path: str, body: bytes, kind: str, packed: bool) -> None:
    check(fuzzed, path, body, kind, packed)
    check(fuzzed, path, gzip.compress(body), kind, packed=True)


@FUZZ
@given(seed=st.sampled_from(SEEDS), data=st.data())
def test_real_requests_with_damage(fuzzed: TestClient, seed: bytes, data: st.DataObject) -> None:
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
def test_any_json(fuzzed: TestClient, path: str, document: Any) -> None:
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
    fuzzed: TestClient, otlp: Any, attributes: dict[str, Any], resource: dict[str, Any],
    is_tool: bool, start: int, end: int, name: str, ids: tuple[int, int],
) -> None:  # fmt: skip
    if is_tool:
        attributes = {**attributes, "gen_ai.operation.name": "execute_tool"}
    span = otlp.span(
        trace=f"{ids[0]:032x}", span=f"{ids[1]:016x}", attributes=attributes, name=name,
        startTimeUnixNano=start, endTimeUnixNano=end,
    )  # fmt: skip
    document = json.dumps(otlp.traces(span, resource=resource))
    answer = fuzzed.post("/v1/traces", content=document, headers={"content-type": JSON})
    assert (answer.status_code, answer.json()) == (200, {})
