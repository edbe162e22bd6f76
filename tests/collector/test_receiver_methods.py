"""Methods and origins: what is not POST is told so, and web pages of others get nothing."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

OTLP = ("/v1/traces", "/v1/logs", "/v1/metrics")
PAGE = {"origin": "https://evil.example", "access-control-request-method": "POST"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", OTLP)
def test_telemetry_is_only_posted(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("path", [*OTLP, "/api/v1/query/export_calls", "/api/v1/stats", "/metrics"])
def test_no_page_of_another_origin_is_let_in(client: TestClient, path: str) -> None:
    asked = [
        client.options(path, headers=PAGE),
        client.get(path, headers=PAGE),
        client.post(path, content=b"{}", headers={**PAGE, "content-type": "application/json"}),
        # What a page may send without asking first.
        client.post(path, content=b"{}", headers={**PAGE, "content-type": "text/plain"}),
    ]
    for answer in asked:
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert asked[0].status_code == 405
    assert asked[3].status_code in (405, 415)
