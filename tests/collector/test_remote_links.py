"""The remote reader's connections: used again, replaced when stale, never mixed up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from fuseboard_collector.api import RemoteReader
from fuseboard_collector.errors import AccessDeniedError, StoreError
from fuseboard_collector.links import MAX_IDLE
from fuseboard_collector.store import Store

EVERYTHING = {"since": None, "until": None}


@contextmanager
def counting(address: str) -> Iterator[tuple[str, list[socket.socket]]]:
    """A relay before a server that keeps every connection it accepts."""
    host, port = address.removeprefix("http://").split(":")
    listener = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            accepted.append(client)
            server = socket.create_connection((host, int(port)))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", accepted
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_one_connection_serves_many_questions(collector: str) -> None:
    with counting(collector) as (url, accepted):
        reader = RemoteReader(url)
        for _ in range(20):
            reader.query("export_calls", EVERYTHING)
        assert len(accepted) == 1


def test_a_refused_question_does_not_cost_the_next_one_its_answer(collector: str) -> None:
    reader = RemoteReader(collector)
    for _ in range(3):
        with pytest.raises(StoreError, match="nonsense"):
            reader.query("nonsense")
        assert reader.query("export_calls", EVERYTHING).num_rows == 0


def test_a_connection_that_the_server_closed_is_replaced(collector: str) -> None:
    with counting(collector) as (url, accepted):
        reader = RemoteReader(url)
        reader.query("export_calls", EVERYTHING)
        accepted[0].shutdown(socket.SHUT_RDWR)
        assert reader.query("export_calls", EVERYTHING).num_rows == 0
        assert len(accepted) == 2


def test_an_answer_that_is_not_read_to_its_end_does_not_spoil_the_next(
    collector: str, store: Store, own_queries: Any
) -> None:
    own_queries("many", "SELECT range AS n FROM range(200000)")
    own_queries("one", "SELECT $n AS n")
    reader = RemoteReader(collector)
    for number in range(3):
        with reader.stream("many") as answer:
            next(answer.pieces)
        assert reader.query("one", {"n": number}).to_pylist() == [{"n": number}]


def test_threads_get_their_own_answers_over_few_connections(
    collector: str, own_queries: Any
) -> None:
    own_queries("one", "SELECT $n AS n")
    with counting(collector) as (url, accepted):
        reader = RemoteReader(url)
        wrong: list[Any] = []

        def ask(start: int) -> None:
            for number in range(start, start + 25):
                found = reader.query("one", {"n": number}).to_pylist()
                if found != [{"n": number}]:
                    wrong.append((number, found))

        threads = [threading.Thread(target=ask, args=(100 * i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == []
        assert len(accepted) <= MAX_IDLE


def test_a_server_that_is_away_is_named(collector: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(StoreError, match=rf"{url}.*fuseboard serve"):
        RemoteReader(url).query("export_calls", EVERYTHING)


def test_a_token_is_sent_and_asked_for_by_name(store: Store, serve_guarded: Any) -> None:
    with serve_guarded(store, "r3ad") as url:
        assert RemoteReader(url, token="r3ad").query("export_calls", EVERYTHING).num_rows == 0
        with pytest.raises(AccessDeniedError, match=r"wants a token.*FUSEBOARD_READ_TOKEN"):
            RemoteReader(url).query("export_calls", EVERYTHING)
        with pytest.raises(AccessDeniedError, match="another token") as caught:
            RemoteReader(url, token="wr0ng").describe()
        assert "wr0ng" not in str(caught.value)


def test_what_the_collector_says_of_itself_can_be_read(collector: str) -> None:
    assert "counters" in RemoteReader(collector).describe()
