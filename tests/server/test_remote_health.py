from __future__ import annotations

import logging
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fuseboard_collector.errors import StoreError
from fuseboard_server.remote_dashboard import UNREADABLE, _health


class Reader:
    fault: str = ""

    def describe(self) -> dict[str, Any]:
        if self.fault:
            raise StoreError(self.fault)
        return {}


def test_a_stranger_learns_that_it_is_not_ready_and_the_log_why_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader: Any = Reader()
    client = TestClient(Starlette(routes=_health(reader)))
    assert client.get("/readyz").json() == {"status": "ready"}
    with caplog.at_level(logging.WARNING, "fuseboard.dashboard"):
        reader.fault = "http://10.0.0.7:4318: [Errno 111] Connection refused"
        for _ in range(3):
            answer = client.get("/readyz")
            assert answer.status_code == 503
            assert answer.json() == {"status": "not ready", "reason": UNREADABLE}
        assert [one.getMessage() for one in caplog.records] == [f"not ready: {reader.fault}"]
        reader.fault = ""
        assert client.get("/readyz").status_code == 200
        reader.fault = "timed out"
        client.get("/readyz")
        assert len(caplog.records) == 2
    assert client.get("/healthz").json() == {"status": "ok"}
