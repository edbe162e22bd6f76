"""Muting over HTTP: who may, what is refused, and that a request sent twice counts once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import uvicorn
from made_calls import Seeded
from receivers import wait_for
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fuseboard_alerts.mute_book import RemoteMutes, StoreMutes
from fuseboard_alerts.mute_routes import routes
from fuseboard_alerts.mutes import MOST, MuteError, draft, find, load, save
from fuseboard_collector.errors import AccessDeniedError, StoreError, StoreReadOnlyError
from fuseboard_collector.store import Store, open_store
from fuseboard_collector.tokens import OPEN, Token

NAME = "ToolCallRetryRateHigh"
HOUR = timedelta(hours=1)


def wanted(**change: Any) -> dict[str, Any]:
    ends = datetime.now(UTC) + HOUR
    return {"alert": NAME, "reason": "deploying", "ends": ends.isoformat(), **change}


def client(store: Store, token: Token = OPEN, host: str = "127.0.0.1") -> TestClient:
    return TestClient(Starlette(routes=routes(store, token=token)), client=(host, 5))


def mutes(store: Store) -> list[str]:
    return [one.reason for one in load(store, datetime.now(UTC))]


def test_this_machine_may_mute_and_unmute_without_a_token(seeded: Seeded) -> None:
    here = client(seeded.store)
    made = here.post("/api/v1/mutes", json=wanted(tool="weather", author="Ann"))
    assert made.status_code == 200
    (one,) = load(seeded.store, datetime.now(UTC))
    assert (one.id, one.tool, one.author) == (made.json()["id"], "weather", "Ann")
    assert here.post("/api/v1/mutes/end", json={"id": one.id}).json() == {"ended": True}
    unknown = {"id": "0" * 32}
    assert here.post("/api/v1/mutes/end", json=unknown).json() == {"ended": False}
    assert mutes(seeded.store) == []


def test_another_machine_may_not_without_a_token(seeded: Seeded) -> None:
    answer = client(seeded.store, host="10.0.0.9").post("/api/v1/mutes", json=wanted())
    assert answer.status_code == 403
    assert "only clients on the collector's machine" in answer.json()["error"]
    assert mutes(seeded.store) == []


def test_only_the_token_for_sending_may(seeded: Seeded) -> None:
    far = client(seeded.store, Token("secret"), "10.0.0.9")
    for headers in ({}, {"authorization": "Bearer reading"}):
        for path in ("/api/v1/mutes", "/api/v1/mutes/end"):
            refused = far.post(path, json=wanted(), headers=headers)
            assert refused.status_code == 401
            assert "token for sending" in refused.json()["error"]
    assert mutes(seeded.store) == []
    headers = {"authorization": "Bearer secret"}
    assert far.post("/api/v1/mutes", json=wanted(), headers=headers).status_code == 200
    assert mutes(seeded.store) == ["deploying"]


@pytest.mark.parametrize(
    ("body", "words"),
    [(wanted(alert="Nope"), "there is no alert 'Nope'"),
     (wanted(ends="2020-01-01T00:00:00Z"), "in the past"), (wanted(ends="soon"), "no moment"),
     (wanted(ends="9999-12-31T23:59:59-23:59"), "not within the years 1 to 9999"),
     (wanted(ends="0001-01-01T00:00:00+23:59"), "not within the years 1 to 9999"),
     (wanted(reason=""), "needs a reason"), (wanted(reason=None), "needs 'reason'"),
     (wanted(reason=5), "must be a text"), (wanted(until="x"), "has no 'until'"),
     ([], "send a JSON object"), (wanted(id="1"), "no id of a mute")],
)  # fmt: skip
def test_what_makes_no_sense_is_a_400_in_words(seeded: Seeded, body: object, words: str) -> None:
    answer = client(seeded.store).post("/api/v1/mutes", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
    assert mutes(seeded.store) == []


def test_hostile_requests_are_refused(seeded: Seeded) -> None:
    here = client(seeded.store)
    form = here.post("/api/v1/mutes", content="{}", headers={"content-type": "text/plain"})
    assert form.status_code == 415  # what a web page of another origin can send
    deep = {"content": "[" * 10_000, "headers": {"content-type": "application/json"}}
    assert here.post("/api/v1/mutes", **deep).status_code == 400
    assert here.post("/api/v1/mutes", json=wanted(tool="x" * 20_000)).status_code == 413
    assert here.post("/api/v1/mutes/end", json={"id": 5}).status_code == 400


@contextmanager
def listening(store: Store, token: Token) -> Iterator[str]:
    """Serve the routes on a port of this machine."""
    config = uvicorn.Config(Starlette(routes=routes(store, token=token)), port=0,
                            log_level="error")  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def test_a_remote_dashboard_mutes_with_the_token_for_sending(seeded: Seeded) -> None:
    now = datetime.now(UTC)
    one = draft(NAME, "from afar", now + HOUR, now, region="eu")
    with listening(seeded.store, Token("secret")) as url:
        for token in (None, "reading"):
            with pytest.raises(AccessDeniedError, match="--token or FUSEBOARD_TOKEN"):
                RemoteMutes(url, token).add(one)
        book = RemoteMutes(url, "secret")
        book.add(one)
        book.add(one)  # as after a broken connection
        assert mutes(seeded.store) == ["from afar"]
        (kept,) = load(seeded.store, datetime.now(UTC))
        assert (kept.id, kept.region) == (one.id, "eu")
        assert book.end(one.id)
        assert book.end(one.id)
        book.add(one)  # an answer that got lost: nobody wants it back
        assert mutes(seeded.store) == []
        assert not book.end("0" * 32)
        with pytest.raises(StoreError, match="no alert 'Nope'"):
            book.add(
                draft(NAME, "x", now + HOUR, now).__class__(
                    **{name: getattr(one, name) for name in one.__slots__} | {"alert": "Nope"}
                )
            )


def test_one_more_than_the_most_is_refused_and_the_last_of_them_can_be_ended(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuseboard_alerts.mute_book.MOST", 3)
    here = client(seeded.store)
    ids = [here.post("/api/v1/mutes", json=wanted(tool=f"t{n}")).json()["id"] for n in range(3)]
    answer = here.post("/api/v1/mutes", json=wanted(reason="one more"))
    assert answer.status_code == 400
    assert "3 mutes are in force" in answer.json()["error"]
    assert "one more" not in mutes(seeded.store)
    assert here.post("/api/v1/mutes/end", json={"id": ids[-1]}).json() == {"ended": True}
    assert here.post("/api/v1/mutes", json=wanted(reason="one more")).status_code == 200


def test_what_is_sent_again_after_it_was_unmuted_changes_nothing(seeded: Seeded) -> None:
    here = client(seeded.store)
    body = wanted(id="0" * 31 + "1")
    for _ in range(2):
        assert here.post("/api/v1/mutes", json=body).status_code == 200
        ended = here.post("/api/v1/mutes/end", json={"id": body["id"]})
        assert ended.json() == {"ended": True}
    span = {"since": datetime.now(UTC) - HOUR, "until": datetime.now(UTC) + HOUR}
    assert seeded.store.query("page_incident_mutes", span).num_rows == 2
    assert mutes(seeded.store) == []


def test_a_mute_is_found_and_ended_however_many_end_before_it(seeded: Seeded) -> None:
    """As servers that wrote before there was a limit may have left them."""
    now = datetime.now(UTC)
    texts = dict.fromkeys(("id", "alert", "severity", "tool", "region", "reason", "author"))
    times = {"set_at": now, "begins": now, "ends": now + HOUR}
    kinds = {**dict.fromkeys(texts, pa.string()), **dict.fromkeys(times, pa.timestamp("us"))}
    rows = [{**texts, **{name: time.replace(tzinfo=None) for name, time in times.items()},
             "id": f"{n:032x}", "alert": NAME, "reason": "short"} for n in range(1000)]  # fmt: skip
    seeded.store.insert("mutes", pa.Table.from_pylist(rows, schema=pa.schema(kinds.items())))
    late = draft(NAME, "long", now + 8 * HOUR, now)
    save(seeded.store, late)
    assert late not in load(seeded.store, now)
    assert find(seeded.store, late.id) == late
    with pytest.raises(MuteError, match=f"{MOST} mutes are in force"):
        StoreMutes(seeded.store).add(draft(NAME, "more", now + HOUR, now))
    StoreMutes(seeded.store).add(late)  # sent again: not refused
    assert StoreMutes(seeded.store).end(late.id)
    ended = find(seeded.store, late.id)
    assert ended is not None
    assert ended.ends < now + HOUR


def test_what_is_sent_twice_at_once_is_written_once(seeded: Seeded) -> None:
    now = datetime.now(UTC)
    one = draft(NAME, "at once", now + HOUR, now)
    start = threading.Barrier(8)

    def add() -> None:
        start.wait(10)
        StoreMutes(seeded.store).add(one)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    since, until = now - HOUR, now + HOUR
    rows = seeded.store.query("page_incident_mutes", {"since": since, "until": until})
    assert rows.num_rows == 1


def test_who_is_refused_without_a_token_is_not_sent_to_look_for_one(
    seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dashboard away from a collector that has none."""
    monkeypatch.setattr("fuseboard_alerts.mute_routes.is_here", lambda _: False)
    now = datetime.now(UTC)
    with listening(seeded.store, OPEN) as url:
        with pytest.raises(AccessDeniedError, match="only clients on the collector's machine") as e:
            RemoteMutes(url).add(draft(NAME, "from afar", now + HOUR, now))
        assert "--token" not in str(e.value)
        with pytest.raises(AccessDeniedError, match="only clients on the collector's machine"):
            RemoteMutes(url).end("0" * 32)
    assert mutes(seeded.store) == []


def test_a_store_that_takes_nothing_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "f.duckdb", retention_days=None)

    def insert(table: str, rows: object) -> None:
        raise StoreReadOnlyError("the file is damaged; the store is only read")

    monkeypatch.setattr(store, "insert", insert)
    answer = client(store).post("/api/v1/mutes", json=wanted())
    store.close()
    assert answer.status_code == 503
    assert answer.json() == {"error": "the file is damaged; the store is only read",
                             "kind": "StoreReadOnlyError"}  # fmt: skip
