"""Tests of adapters run in environments of their own; elsewhere their folders are left out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    # Old releases of what is imported here warn, before pytest knows that they may.
    warnings.simplefilter("ignore")
    from tests.instrumentation.conftest import (  # noqa: F401 - fixtures of these tests, too
        FakeClock,
        RecordingTelemetry,
        _registrations_end_with_the_test,
        clock,
        full_wait,
        telemetry,
    )
    from tests.instrumentation.telemetry.conftest import (  # noqa: F401 - as above
        clean_setup,
        collector,
        registry,
        start,
    )

_IN_ENVIRONMENT = bool(os.environ.get("FUSEBOARD_ADAPTER_ENVIRONMENT"))
if not _IN_ENVIRONMENT:
    collect_ignore_glob = [
        f"{path.name}/*" for path in Path(__file__).parent.iterdir() if path.is_dir()
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Let frameworks warn, of their own and each other's deprecations; fuseboard may not."""
    if _IN_ENVIRONMENT:
        config.addinivalue_line("filterwarnings", "default")
        config.addinivalue_line("filterwarnings", r"error:::fuseboard(\..*)?")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Trace with a provider of the application's, for fuseboard and the framework alike."""
    # Not above: releases of OpenTelemetry warn when they are loaded, which is no error in here.
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from prometheus_client import CollectorRegistry

    import fuseboard
    from fuseboard.runtime import RUNTIME

    # Nobody listens there; the spans go to the application's own exporter.
    monkeypatch.setenv("FUSEBOARD_ENDPOINT", "http://127.0.0.1:9")
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    previous = RUNTIME.telemetry
    fuseboard.init("agent", registry=CollectorRegistry(), shutdown_timeout=0.1)
    try:
        yield exporter
    finally:
        fuseboard.shutdown()
        RUNTIME.telemetry = previous
