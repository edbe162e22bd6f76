"""The whole way over HTTP: our client, the commands, and a collector of others in front."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner
from engines import Database
from http_server import PASSWORD, USER, serving
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from otel_table import OTEL_TRACES
from starlette.applications import Starlette

from fuseboard import conventions as c
from fuseboard_collector import api, receiver
from fuseboard_collector.store import AnyStore, Batch, ToolCall, open_any
from fuseboard_server.cli import root

EVERYTHING = {"since": None, "until": None}
SPANS = 300
Agent = Callable[..., int]


@pytest.fixture
def port(engine: Any, engine_path: str) -> Iterator[int]:
    with serving(engine_path) as port:
        yield port


@pytest.fixture
def url(port: int, empty: Database) -> str:
    return f"clickhouse://{USER}@127.0.0.1:{port}/{empty.address.database}"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    monkeypatch.setenv("FUSEBOARD_STORE_PASSWORD", PASSWORD)

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(root, arguments, prog_name="fuseboard")
        assert PASSWORD not in done.output
        return done.exit_code, done.output

    return run


@pytest.fixture
def store(url: str, cli: Callable[..., tuple[int, str]]) -> Iterator[AnyStore]:
    code, said = cli("store", "init", "--store", url)
    assert code == 0, said
    store = open_any(url.replace("@", f":{PASSWORD}@"), retention_days=None)
    yield store
    store.close()


def test_init_store_and_export(
    store: AnyStore, url: str, cli: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    code, said = cli("store", "init", "--store", url)
    assert (code, said.splitlines()[0]) == (0, "everything is there already")
    odd = "ü\\n'\t{x:String} 🧨"
    store.append(Batch(calls=[ToolCall(odd, end=datetime.now(UTC))])).result(30)
    window = {"since": datetime(2026, 1, 1), "until": datetime(2100, 1, 1)}
    everywhere = {**window, "tools": [odd], "regions": None, "classes": None}
    wanted = {"environments": None, "agents": None, **everywhere}
    from fuseboard_collector.store import named_queries

    (statement,) = named_queries.load("page_tools").statements
    rows = store.query("page_tools", {k: wanted[k] for k in statement.parameters}).to_pylist()
    assert [row["tool"] for row in rows] == [odd]
    file = tmp_path / "calls.csv"
    code, said = cli("export", "calls", "--store", url, "--format", "csv", "-o", str(file))
    assert (code, "1 calls written" in said) == (0, True), said
    assert odd in file.read_text()


def test_a_wrong_password_is_said_and_not_shown(
    url: str, cli: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEBOARD_STORE_PASSWORD", "wr0ng")
    code, said = cli("store", "init", "--store", url)
    assert code == 1
    assert "does not let this user do that" in said
    assert "wr0ng" not in said


@pytest.mark.e2e
def test_the_server_stores_what_it_is_sent(store: AnyStore, url: str, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "fuseboard_server", "serve", "--store", url,
               "--data", str(tmp_path / "data"), "--otlp-http-port", str(port),
               "--otlp-grpc-port", "off", "--ui-port", "0"]  # fmt: skip
    environment = {**os.environ, "FUSEBOARD_STORE_PASSWORD": PASSWORD}
    said = tmp_path / "said.txt"
    with said.open("wb") as output:
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            wait_until(lambda: answers(port))
            send_spans(port)
            wait_until(lambda: store.query("page_store").to_pylist()[0]["calls"] == SPANS)
        finally:
            server.terminate()
            server.wait(30)
    assert server.returncode == 0
    assert url in said.read_text()
    assert PASSWORD not in said.read_text()
    assert not (tmp_path / "data" / "fuseboard.duckdb").exists()


# --- rotel ---------------------------------------------------------------------------------
@pytest.fixture
def rotel() -> Iterator[Agent]:
    """Return what starts rotel with an exporter; the result is the port on which it listens."""
    import rotel as package

    binary = Path(str(package.__file__)).with_name("rotel-agent")
    running: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> int:
        port, other = free_port(), free_port()
        command = [str(binary), "start", "--otlp-http-endpoint", f"127.0.0.1:{port}",
                   "--otlp-grpc-endpoint", f"127.0.0.1:{other}", "--batch-timeout", "100ms",
                   *options]  # fmt: skip
        running.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        wait_until(lambda: answers(port))
        return port

    yield start
    for process in running:
        process.terminate()
        process.wait(20)


def send_spans(port: int) -> None:
    """Send foreign and own tool spans through the SDK's own exporter."""
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces")
    provider = TracerProvider(resource=Resource({"service.name": "trip"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("some.instrumentation")
    for number in range(SPANS):
        own = {c.OUTCOME: "ok", c.ATTEMPTS: 1} if number % 3 == 0 else {}
        with tracer.start_as_current_span(
            "execute_tool search",
            attributes={
                c.GEN_AI_OPERATION_NAME: "execute_tool", c.GEN_AI_TOOL_NAME: "search",
                c.GEN_AI_TOOL_CALL_ID: f"call-{number}", **own,
            },
        ):  # fmt: skip
            pass
    provider.shutdown()


@pytest.mark.e2e
def test_spans_come_through_another_collector_into_our_store(store: AnyStore, rotel: Agent) -> None:
    with collecting(store) as endpoint:
        port = rotel("--exporter", "otlp", "--otlp-exporter-endpoint", endpoint,
                     "--otlp-exporter-protocol", "http")  # fmt: skip
        send_spans(port)
        foreign = SPANS - len(range(0, SPANS, 3))
        wait_until(lambda: store.stats.get("assembled_calls") == foreign)
    rows = store.query("export_calls", EVERYTHING).to_pylist()
    assert {row["call_id"] for row in rows} == {f"call-{n}" for n in range(SPANS)}
    assert {row["outcome"] for row in rows} == {"ok"}


@pytest.mark.e2e
def test_what_another_collector_writes_into_clickhouse_becomes_calls(
    store: AnyStore, url: str, port: int, empty: Database, rotel: Agent,
    cli: Callable[..., tuple[int, str]],
) -> None:  # fmt: skip
    empty.command(OTEL_TRACES)
    code, said = cli("store", "attach-otel", "--store", url)
    assert code == 0, said
    agent = rotel(
        "--exporter", "clickhouse", "--clickhouse-exporter-endpoint", f"http://127.0.0.1:{port}",
        "--clickhouse-exporter-database", empty.address.database,
        "--clickhouse-exporter-table-prefix", "otel", "--clickhouse-exporter-compression", "none",
        "--clickhouse-exporter-user", USER, "--clickhouse-exporter-password", PASSWORD,
        "--clickhouse-exporter-async-insert", "false",
    )  # fmt: skip
    send_spans(agent)
    wait_until(lambda: empty.ask("SELECT count() FROM otel_traces")[0][0] == SPANS)
    rows = store.query("export_calls", EVERYTHING).to_pylist()
    assert {row["call_id"] for row in rows} == {f"call-{n}" for n in range(SPANS)}
    assert {(row["tool"], row["service"], row["outcome"]) for row in rows} == {
        ("search", "trip", "ok")
    }


class collecting:
    """The receiver on a free port, storing into a store."""

    def __init__(self, store: AnyStore) -> None:
        app = Starlette(routes=[*receiver.routes(store), *api.routes(store)])
        self._socket = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    def __enter__(self) -> str:
        self._thread.start()
        wait_until(lambda: self._server.started)
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def wait_until(holds: Callable[[], bool], seconds: float = 40) -> None:
    waited = threading.Event()
    for _ in range(round(seconds / 0.1)):
        if holds():
            return
        waited.wait(0.1)
    raise AssertionError("it never came true")
