from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from prometheus_client import CollectorRegistry

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from fake_collector import FakeCollector  # noqa: E402
from plain_facts import lost_by_a_tuple  # noqa: E402

from fuseboard import setup  # noqa: E402
from fuseboard.record import CallRecord  # noqa: E402
from fuseboard.runtime import RUNTIME, NullTelemetry  # noqa: E402
from fuseboard.telemetry import exit as process_exit  # noqa: E402
from fuseboard.telemetry.tool_span import ToolSpan, ToolSpanSource  # noqa: E402


@pytest.fixture(autouse=True)
def _tuples_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail where a call passes for plain of which more is known than a tuple holds."""
    lost: set[str] = set()
    end_plain = ToolSpanSource.end_plain

    def watched(source: ToolSpanSource, call: CallRecord, span: ToolSpan) -> bool:
        lost.update(lost_by_a_tuple(call))
        return end_plain(source, call, span)

    monkeypatch.setattr(ToolSpanSource, "end_plain", watched)
    yield
    assert lost == set(), "set is_plain to False where these are set"


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    fake = FakeCollector()
    yield fake
    fake.close()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def clean_setup(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what init did; keep exit handlers and environment out of the test run."""
    for variable in list(__import__("os").environ):
        if variable.startswith(("OTEL_", "FUSEBOARD_")):
            monkeypatch.delenv(variable)
    monkeypatch.setattr(process_exit, "install", lambda *args: None)
    tools = dict(RUNTIME._tools)
    RUNTIME._tools.clear()  # those of test modules, which register theirs when imported
    yield
    setup.shutdown(0.0)
    if setup._STATE.assembly is not None:
        setup._close_servers()
        setup._STATE.assembly.remove_metrics()
    setup._STATE.assembly = None
    setup._STATE.is_disabled = False
    setup._STATE.is_exit_installed = False
    RUNTIME._tools.clear()
    RUNTIME._tools.update(tools)
    RUNTIME.telemetry = NullTelemetry()
    RUNTIME.region = None
    RUNTIME.record_arguments = RUNTIME.record_results = False
    trace._TRACER_PROVIDER = None


@pytest.fixture
def start(
    clean_setup: None, collector: FakeCollector, registry: CollectorRegistry
) -> Callable[..., None]:
    def init(**settings: Any) -> None:
        settings = {"endpoint": collector.url, "registry": registry, **settings}
        setup.init("tests", **settings)

    return init


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python source in a process of its own, with the hand-made calls at hand."""

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        import os

        script = tmp_path / "script.py"
        script.write_text(f"import sys; sys.path.insert(0, {str(HERE)!r})\n{source}")
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OTEL_", "FUSEBOARD_"))
        }
        return subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            env={**inherited, **environment},
            timeout=120,
            check=False,
        )

    return run


@contextlib.contextmanager
def black_hole() -> Iterator[str]:
    """A listening socket that accepts nothing and never answers."""
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    with black_hole() as url:
        yield url


@pytest.fixture
def refusing_endpoint() -> str:
    import socket

    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{once.getsockname()[1]}"
