from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from fuseboard_collector import api, errors
from fuseboard_collector.api import RemoteReader
from fuseboard_collector.errors import (
    QueryParameterError,
    StoreBusyError,
    StoreError,
    StoreInUseError,
    UnknownQueryError,
)
from fuseboard_collector.receiver import body
from fuseboard_collector.store import Batch, Store, ToolCall, open_store

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
EVERYTHING: dict[str, object] = {"since": None, "until": None}


def test_a_remote_reader_gives_the_same_table_as_the_store(store: Store, collector: str) -> None:
    calls = [ToolCall("search", end=NOW, region=f"r-{n}", http_status=n) for n in range(1000)]
    store.append(Batch(calls=calls)).result(10)
    reader = RemoteReader(collector + "/")
    assert reader.store_id == collector
    for parameters in (EVERYTHING, {"since": NOW.replace(hour=1), "until": NOW}):
        here, there = (x.query("export_calls", parameters) for x in (store, reader))
        assert there.num_rows == 1000
        assert there.schema == here.schema
        assert there.to_pylist() == here.to_pylist()


def test_an_empty_result_has_its_columns(store: Store, collector: str) -> None:
    found = RemoteReader(collector).query("export_calls", EVERYTHING)
    assert found.num_rows == 0
    assert found.schema == store.query("export_calls", EVERYTHING).schema


def test_errors_arrive_as_they_left(collector: str) -> None:
    reader = RemoteReader(collector)
    with pytest.raises(UnknownQueryError, match="did you mean 'export_calls'"):
        reader.query("export_cals")
    with pytest.raises(UnknownQueryError):
        reader.query("../../etc/passwd")
    with pytest.raises(QueryParameterError, match=r"needs \$since, \$until too"):
        reader.query("export_calls")


def test_filters_that_an_older_dashboard_does_not_know_restrict_nothing(
    store: Store, collector: str
) -> None:
    store.append(Batch(calls=[ToolCall("search", end=NOW, region="eu")])).result(10)
    window: dict[str, object] = {"since": NOW.replace(hour=1), "until": NOW}
    everything = {**window, "tools": None, "regions": None}
    reader = RemoteReader(collector)
    found = reader.query("page_retries", {**window, "tools": ["search"]})
    assert found.num_rows == 1
    assert found == store.query("page_retries", everything)
    with pytest.raises(QueryParameterError, match=r"needs \$since too"):
        reader.query("page_retries", {"until": NOW})


def test_a_filter_that_an_older_collector_does_not_know_is_explained(collector: str) -> None:
    given = {**EVERYTHING, "tools": None, "regions": None, "moon": ["full"]}
    with pytest.raises(QueryParameterError, match=r"has no parameter \$moon.*Upgrade"):
        RemoteReader(collector).query("page_retries", given)


@pytest.mark.parametrize(
    "kind",
    [
        kind for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, StoreError)
    ],
)  # fmt: skip
def test_every_error_of_a_store_keeps_its_kind_and_words_on_the_way(
    store: Store, collector: str, kind: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise kind("it is so")

    monkeypatch.setattr(store, "stream", fail)
    monkeypatch.setattr(store, "describe", fail)
    reader = RemoteReader(collector)
    for ask in (lambda: reader.query("export_calls", EVERYTHING), reader.describe):
        with pytest.raises(StoreError, match="it is so") as caught:
            ask()
        assert type(caught.value) is kind


def test_parameters_that_do_not_arrive_are_given_up(
    collector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "BODY_SECONDS", 0.1)
    host, port = collector.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(
            b"POST /api/v1/query/export_calls HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n"
            b"content-type: application/json\r\n\r\n{"
        )
        assert link.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_query_that_writes_is_not_offered(client: TestClient) -> None:
    answer = client.post("/api/v1/query/alert_memory_save", json={})
    assert answer.status_code == 404
    assert answer.json()["kind"] == "UnknownQueryError"


@pytest.fixture
def large(own_queries: Callable[[str, str], None]) -> int:
    """A query named `large` with so many rows that its answer is spooled on disk."""
    own_queries("large", "SELECT i, repeat('x', 100) AS x FROM range(200000) t(i)")
    assert 2 * api.SPOOL_IN_MEMORY < 200_000 * 100
    return 200_000


def test_a_large_answer_is_spooled_and_arrives_whole(
    store: Store, collector: str, large: int
) -> None:
    rows = 0
    with RemoteReader(collector).stream("large") as answer:
        for piece in answer.pieces:
            assert piece["i"][0].as_py() == rows
            rows += piece.num_rows
            assert piece.num_rows < large
    assert rows == large
    left = {item.name for item in store.path.parent.iterdir()}
    assert left == {"fuseboard.duckdb", "fuseboard.duckdb.health"}, "no trace"


def test_a_reader_that_stops_half_way_holds_nothing_open(
    store: Store, collector: str, large: int, until: Callable[..., None]
) -> None:
    with RemoteReader(collector).stream("large") as answer:
        assert next(answer.pieces).num_rows
        database: Any = store._database
        assert database._cursors == set(), "the transaction ended before the answer left"

    def open_spools() -> list[str]:
        found = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(str(descriptor.readlink()))
        folder = str(store.path.parent)
        return [one for one in found if one.startswith(folder) and "fuseboard.duckdb" not in one]

    until(lambda: not open_spools(), "closing the spool")
    assert RemoteReader(collector).query("large").num_rows == large


def test_an_answer_stops_before_it_fills_the_disk(
    store: Store, collector: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store._space, "floor", 1 << 60)
    with pytest.raises(StoreError, match="MiB left"):
        RemoteReader(collector).query("large")
    assert RemoteReader(collector).query("export_calls", EVERYTHING).num_rows == 0, "small ones go"


@pytest.mark.parametrize("cut", [3, 1000])
def test_an_answer_that_is_cut_off_is_an_error_and_no_short_answer(
    store: Store, large: int, cut: int
) -> None:
    """The end of a connection looks like the end of an Arrow stream to Arrow."""
    with store.stream("large") as answer:
        pieces = [next(answer.pieces) for _ in range(4)]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pieces[0].schema) as writer:
        for piece in pieces[:3]:
            writer.write_batch(piece)
        end = sink.tell()
    body = sink.getvalue()[:end] if cut == 3 else sink.getvalue()[: end - cut]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_once() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(100_000)
                head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                link.sendall(head + b"%x\r\n" % len(body) + body + b"\r\n")

        server = threading.Thread(target=answer_once)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(StoreError, match=url):
            RemoteReader(url).query("large")
        server.join(10)


def test_queries_do_not_pile_up(
    store: Store, collector: str, monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    monkeypatch.setattr(api, "MAX_WAITING", 6)
    go_on = threading.Event()
    original = store.stream
    begun: list[str] = []

    def slow(name: str, parameters: Any) -> Any:
        begun.append(name)
        assert go_on.wait(20)
        return original(name, parameters)

    monkeypatch.setattr(store, "stream", slow)
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(RemoteReader(collector).query("export_calls", EVERYTHING).num_rows)
        except StoreBusyError:
            outcomes.append("busy")

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    until(lambda: outcomes == ["busy"] * 4, "the refusal of what is too much")
    assert len(begun) <= api.QUERY_THREADS
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert outcomes == ["busy"] * 4 + [0] * 6
    assert RemoteReader(collector).query("export_calls", EVERYTHING).num_rows == 0


def test_nobody_there_is_said_plainly(unused_tcp_port: int) -> None:
    reader = RemoteReader(f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(StoreError, match=r"no answer from the collector at http://127.*serve"):
        reader.query("export_calls", EVERYTHING)


@pytest.mark.parametrize("url", ["", "127.0.0.1:4318", "ftp://host", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a collector"):
        RemoteReader(url)


def test_a_parameter_that_json_can_not_carry_is_refused(collector: str) -> None:
    with pytest.raises(TypeError, match="can't be object"):
        RemoteReader(collector).query("export_calls", {"since": object(), "until": None})


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b"\xff"])
def test_parameters_that_are_no_object_are_a_400(client: TestClient, body: bytes) -> None:
    answer = client.post(
        "/api/v1/query/export_calls", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert answer.json()["kind"] == "QueryParameterError"


def test_only_json_is_taken_so_that_other_origins_can_not_ask(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client.post(
            "/api/v1/query/export_calls", content=b"{}", headers={"content-type": kind}
        )
        assert answer.status_code == 415


def test_too_many_parameters_are_a_413(client: TestClient) -> None:
    answer = client.post("/api/v1/query/export_calls", json={"since": "x" * 2_000_000})
    assert answer.status_code == 413


def test_health_and_readiness(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_stats_count_what_happened(client: TestClient, otlp: Any, send: Any) -> None:
    send(otlp.traces(otlp.span()))
    send(otlp.traces(otlp.span(), otlp.span(span="00" * 8)))
    client.post("/v1/traces", content=b"{", headers={"content-type": "application/json"})
    stats = client.get("/api/v1/stats").json()
    counters = stats["counters"]
    assert counters["requests{traces}"] == 3
    assert counters["accepted_spans"] == 2
    assert counters["stored_rows{tool_calls}"] == 1
    assert counters["repeats{tool_calls}"] == 1
    assert counters["rejected_traces{bad span_id}"] == 1
    assert counters["refused_requests{400}"] == 1
    assert counters["received_bytes"] > 500
    assert stats["size_bytes"] > 0
    assert stats["queue_rows"] == 0


def test_a_store_that_waits_for_its_file_is_alive_but_not_ready(
    tmp_path: Any, hold: Callable[..., Any], serve: Any, until: Callable[..., None]
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    open_store(path).close()
    holder = hold(path)
    store = open_store(path, wait=True)
    with serve(store) as url:
        reader = RemoteReader(url)
        with pytest.raises(StoreInUseError, match=f"held by process {holder.pid}"):
            reader.query("export_calls", EVERYTHING)
        holder.communicate()
        until(lambda: store.unavailable_because() is None, "opening the file")
        assert reader.query("export_calls", EVERYTHING).num_rows == 0
    store.close()
