"""Tests of adapters run in environments of their own; elsewhere their folders are left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
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
