from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace

from fuseboard import setup
from fuseboard.telemetry import exit as process_exit


@pytest.fixture
def clean_setup(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what init did; keep exit handlers out of the test run."""
    monkeypatch.setattr(process_exit, "install", lambda *args: None)
    yield
    setup.shutdown(0.0)
    if setup._STATE.assembly is not None:
        setup._STATE.assembly.remove_metrics()
    setup._STATE.assembly = None
    setup._STATE.is_stopped = False
    trace._TRACER_PROVIDER = None
