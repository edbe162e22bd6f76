"""Bearer tokens over HTTP: who may send, who may read, and what the others are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fuseboard_collector import api, receiver
from fuseboard_collector.store import Store
from fuseboard_collector.tokens import OPEN, Token

PB = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
SEND, READ = {"authorization": "Bearer s3nd"}, {"authorization": "Bearer r3ad"}
WRONG = [
    {}, {"authorization": ""}, {"authorization": "Bearer"}, {"authorization": "Bearer "},
    {"authorization": "Bearer s3n"}, {"authorization": "Bearer s3ndd"},
    {"authorization": "Bearer S3ND"}, {"authorization": "Basic s3nd"}, {"authorization": "s3nd"},
    {"authorization": "Bearer \xe9"}, {"authorization": "Bearer s3nd, Bearer s3nd"},
]  # fmt: skip


@pytest.fixture
def guarded(store: Store) -> Iterator[TestClient]:
    routes = [
        *receiver.routes(store, token=Token("s3nd")), *api.routes(store, token=Token("r3ad")),
    ]  # fmt: skip
    with TestClient(Starlette(routes=routes)) as client:
        yield client


@pytest.mark.parametrize("headers", WRONG, ids=str)
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/v1/metrics"])
def test_sending_needs_the_token(
    guarded: TestClient, otlp: Any, path: str, headers: dict[str, str]
) -> None:
    encoded = {key: value.encode("latin-1") for key, value in {**PB, **headers}.items()}
    answer = guarded.post(path, content=b"", headers=encoded)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    status = Status.FromString(answer.content)
    assert status.code == 16
    assert "Authorization: Bearer" in status.message
    assert "s3nd" not in status.message


def test_with_the_token_data_are_stored_and_with_its_scheme_in_any_case(
    guarded: TestClient, otlp: Any, export: Callable[[str], Any]
) -> None:
    body = otlp.json(otlp.traces(otlp.span()))
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {**JSON, "authorization": f"{scheme} s3nd"}
        assert guarded.post("/v1/traces", content=body, headers=headers).status_code == 200
    assert len(export("calls")) == 1


@pytest.mark.parametrize("headers", [{}, SEND, {"authorization": "Bearer r3adr"}], ids=str)
def test_reading_needs_its_own_token(guarded: TestClient, headers: dict[str, str]) -> None:
    asked = [
        guarded.post("/api/v1/query/export_calls", content=b"{}", headers={**JSON, **headers}),
        guarded.get("/api/v1/stats", headers=headers),
        guarded.get("/metrics", headers=headers),
    ]
    for answer in asked:
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["kind"] == "AccessDeniedError"


def test_with_the_token_it_can_be_read(guarded: TestClient) -> None:
    body = b'{"since": null, "until": null}'
    answer = guarded.post("/api/v1/query/export_calls", content=body, headers={**JSON, **READ})
    assert pa.ipc.open_stream(answer.content).read_all().num_rows == 0
    assert guarded.get("/api/v1/stats", headers=READ).status_code == 200
    assert guarded.get("/metrics", headers=READ).status_code == 200


def test_health_is_everybodys(guarded: TestClient) -> None:
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/readyz").status_code == 200


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "t\xe9", "tab\t", "\x7f"])
def test_a_token_that_can_not_be_sent_is_refused_without_being_repeated(value: str) -> None:
    with pytest.raises(ValueError, match="visible ASCII") as caught:
        Token(value)
    assert not value or value not in str(caught.value)


def test_without_a_token_everybody_is_admitted() -> None:
    assert OPEN.admits(None)
    assert OPEN.admits("Bearer anything")
    assert not OPEN
    assert Token("x")


def test_a_token_may_come_as_bytes() -> None:
    assert Token("s3nd").admits(b"Bearer s3nd")
    assert not Token("s3nd").admits(b"Bearer \xff")
