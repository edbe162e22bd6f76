from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import duckdb
import pytest
import uvicorn
from click.testing import CliRunner, Result
from starlette.applications import Starlette

from fuseboard_collector import api, operations
from fuseboard_collector.store import Batch, Store, ToolCall, backup, open_at_rest, open_store
from fuseboard_collector.tokens import Token
from fuseboard_server.cli import root
from fuseboard_server.settings import DATA_FILE

NOW = 1_796_000_000_000_000
DAY = 86_400_000_000
CALLS = 500


def run(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with old calls, on which nothing runs."""
    folder = tmp_path / "data"
    store = open_store(folder / DATA_FILE, retention_days=None)
    store.append(
        Batch(
            calls=[
                ToolCall("a", end=NOW - 400 * DAY, received_at=NOW - 400 * DAY + n)
                for n in range(CALLS)
            ]
        )
    ).result(30)
    store.close()
    return folder


@pytest.fixture
def server(folder: Path, free_server: Any) -> Iterator[tuple[Store, str]]:
    store = open_store(folder / DATA_FILE, retention_days=None)
    with free_server(store, None) as url:
        yield store, url
    store.close()


@pytest.fixture
def free_server() -> Any:
    import socket
    import threading
    import time
    from contextlib import contextmanager

    @contextmanager
    def serving(store: Store, token: str | None) -> Iterator[str]:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        app = Starlette(
            routes=[
                *api.routes(store, token=Token(token)),
                *operations.routes(store, token=Token(token)),
            ]
        )
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not running.started and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join(20)
            listener.close()

    return serving


def calls_in(path: Path) -> int:
    store = open_at_rest(path)
    try:
        return int(store.query("page_store")["calls"][0].as_py())
    finally:
        store.close()


# --- backup -------------------------------------------------------------------------------
def test_a_backup_of_a_running_server_is_a_complete_data_file(
    server: tuple[Store, str], tmp_path: Path
) -> None:
    store, url = server
    copy = tmp_path / "copy.duckdb"
    done = run("backup", copy, "--collector", url)
    assert done.exit_code == 0, done.output
    assert f"{CALLS} calls, read back and complete" in done.stdout
    assert calls_in(copy) == CALLS
    store.append(Batch(calls=[ToolCall("b", end=NOW)])).result(10)
    assert not list(store.path.parent.glob(".backup-*")), "no trace"


def test_a_backup_can_be_put_in_the_place_of_a_data_file(
    server: tuple[Store, str], tmp_path: Path
) -> None:
    _, url = server
    restored = tmp_path / "restored"
    restored.mkdir()
    assert run("backup", restored / DATA_FILE, "--collector", url).exit_code == 0
    store = open_store(restored / DATA_FILE, retention_days=None)
    store.append(Batch(calls=[ToolCall("b", end=NOW)])).result(10)
    assert store.query("page_store")["calls"].to_pylist() == [CALLS + 1]
    store.close()


def test_a_folder_at_rest_is_backed_up_without_touching_it(folder: Path, tmp_path: Path) -> None:
    before = {item.name: item.read_bytes() for item in folder.iterdir()}
    backups = tmp_path / "backups"
    backups.mkdir()
    done = run("backup", backups, "--data", folder)
    assert done.exit_code == 0, done.output
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before
    (copy,) = backups.iterdir()
    assert calls_in(copy) == CALLS


@pytest.mark.parametrize("running", [True, False])
def test_a_backup_is_its_owners_alone_from_its_first_byte_on(
    folder: Path, free_server: Any, tmp_path: Path, running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = backup.verify
    modes: list[int] = []

    def verify(path: Path) -> dict[str, int]:
        modes.append(path.stat().st_mode & 0o777)
        return original(path)

    monkeypatch.setattr(backup, "verify", verify)
    target = tmp_path / "copy.duckdb"
    if running:
        store = open_store(folder / DATA_FILE, retention_days=None)
        with free_server(store, None) as url:
            done = run("backup", target, "--collector", url)
        store.close()
    else:
        done = run("backup", target, "--data", folder)
    assert done.exit_code == 0, done.output
    assert [*modes, target.stat().st_mode & 0o777] == [0o600, 0o600]


def test_a_backup_overwrites_nothing(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "precious"
    there.write_text("mine")
    done = run("backup", there, "--data", folder)
    assert done.exit_code == 2
    assert "exists already, and a backup overwrites nothing" in done.output
    assert there.read_text() == "mine"


def test_a_backup_is_for_its_owner_alone(
    folder: Path, server: tuple[Store, str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.duckdb"
    assert run("backup", copy, "--collector", server[1]).exit_code == 0
    assert copy.stat().st_mode & 0o077 == 0


def test_a_backup_goes_where_there_are_no_links(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    copy = tmp_path / "copy.duckdb"
    done = run("backup", copy, "--data", folder)
    assert done.exit_code == 0, done.output
    assert calls_in(copy) == CALLS
    assert not list(tmp_path.glob(".*"))


def test_a_link_in_the_way_of_a_backup_is_not_followed(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / ".copy.duckdb.partial").symlink_to(victim)
    (tmp_path / "dangling.duckdb").symlink_to(victim)
    assert run("backup", tmp_path / "copy.duckdb", "--data", folder).exit_code == 0
    taken = run("backup", tmp_path / "dangling.duckdb", "--data", folder)
    assert taken.exit_code == 1
    assert "exists" in taken.output
    assert not victim.exists()


def test_a_backup_that_can_not_be_read_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path = folder / DATA_FILE
    path.write_bytes(path.read_bytes()[:5000])
    done = run("backup", tmp_path / "copy.duckdb", "--data", folder)
    assert done.exit_code == 4
    assert "can't be read" in done.output
    assert [item.name for item in tmp_path.iterdir()] == ["data"]


def test_without_a_token_only_this_machine_may_operate(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.testclient import TestClient

    store = open_store(folder / DATA_FILE, retention_days=None)
    app = Starlette(routes=operations.routes(store))
    paths = (operations.BACKUP_PATH, operations.RETENTION_PATH, operations.COMPACT_PATH)
    with TestClient(app, client=("192.0.2.7", 5)) as elsewhere:
        for path in paths:
            assert elsewhere.post(path, json={}).status_code == 403
    with TestClient(app, client=("127.0.0.1", 5)) as here:
        assert here.post(paths[1], json={"dry_run": True}).status_code == 200
        assert here.post(paths[1], content=b"{}").status_code == 415
        assert here.post(paths[1], json={"days": "x"}).status_code == 400
        assert here.post(paths[1], json=[]).status_code == 400
    store.close()


def test_a_token_for_reading_gives_no_right_to_delete(folder: Path) -> None:
    from starlette.testclient import TestClient

    store = open_store(folder / DATA_FILE, retention_days=30)
    app = Starlette(routes=operations.routes(store, token=Token("secret")))
    bearer = {"authorization": "Bearer secret"}
    with TestClient(app, client=("192.0.2.7", 5), headers=bearer) as elsewhere:
        said = elsewhere.post(operations.RETENTION_PATH, json={"dry_run": True})
        assert said.json()["rows"] >= CALLS
        for path in (operations.RETENTION_PATH, operations.COMPACT_PATH):
            refused = elsewhere.post(path, json={})
            assert refused.status_code == 403
            assert "run it there" in refused.json()["error"]
    with TestClient(app, client=("127.0.0.1", 5)) as here:
        assert here.post(operations.RETENTION_PATH, json={}).status_code == 401
        done = here.post(operations.RETENTION_PATH, json={}, headers=bearer)
        assert done.json()["rows"] == said.json()["rows"]
    store.close()


@pytest.mark.parametrize(
    "body", ['{"dryrun": true}', '{"dry_run": "yes"}', "[" * 4000, '{"days": 1e999}', '{"days": 0}']
)
def test_what_is_not_understood_deletes_nothing(folder: Path, body: str) -> None:
    from starlette.testclient import TestClient

    store = open_store(folder / DATA_FILE, retention_days=30)
    json_body = {"content-type": "application/json"}
    with TestClient(Starlette(routes=operations.routes(store)), client=("::1", 5)) as here:
        answer = here.post(operations.RETENTION_PATH, content=body, headers=json_body)
    assert answer.status_code == 400, answer.text
    assert store.query("page_store")["calls"].to_pylist() == [CALLS]
    store.close()


def test_what_a_server_refuses_for_a_while_is_said(server: tuple[Store, str]) -> None:
    store, url = server
    store._health.damaged("a block")
    done = run("store", "compact", "--collector", url)
    assert done.exit_code == 1, done.output
    assert "is damaged and is only read from now on" in done.output
    store._health.sound()


def test_with_a_token_whoever_has_it_may(folder: Path, free_server: Any, tmp_path: Path) -> None:
    store = open_store(folder / DATA_FILE, retention_days=None)
    with free_server(store, "secret") as url:
        copy = tmp_path / "copy.duckdb"
        refused = run("backup", copy, "--collector", url)
        assert refused.exit_code == 1
        assert "token" in refused.output
        done = run("backup", copy, "--collector", url, "--read-token", "secret")
        assert done.exit_code == 0, done.output
    store.close()
    assert calls_in(copy) == CALLS


# --- retention ----------------------------------------------------------------------------
@pytest.mark.parametrize("running", [True, False])
def test_retention_says_first_and_does_then(folder: Path, free_server: Any, running: bool) -> None:
    def both(place: tuple[object, ...]) -> None:
        for _ in range(2):
            said = run("retention", *place, "--retention", "30d", "--dry-run")
            assert said.exit_code == 0, said.output
            assert f"{CALLS} rows" in said.output or f"{2 * CALLS} rows" in said.output
            assert "would go (too old)" in said.output
        done = run("retention", *place, "--retention", "30d")
        assert "removed (too old)" in done.output
        assert "nothing has expired" in run("retention", *place, "--retention", "30d").output

    if running:
        store = open_store(folder / DATA_FILE, retention_days=None)
        with free_server(store, None) as url:
            both(("--collector", url))
        store.close()
    else:
        both(("--data", folder))
    assert calls_in(folder / DATA_FILE) == 0


# --- the data file ------------------------------------------------------------------------
def test_info_tells_size_and_state(folder: Path, server: tuple[Store, str]) -> None:
    store, url = server
    running = run("store", "info", "--collector", url)
    assert "takes data        yes" in running.output
    assert "free in the file" in running.output
    store.close()
    resting = run("store", "info", "--data", folder)
    assert "schema version" in resting.output
    assert "oldest row" in resting.output


def test_compact_and_check_a_running_store(server: tuple[Store, str]) -> None:
    _, url = server
    compacted = run("store", "compact", "--collector", url)
    assert compacted.exit_code == 0, compacted.output
    assert "MB before" in compacted.output
    assert run("store", "check", "--collector", url).output == "everything can be read\n"


def test_compact_and_check_at_rest(folder: Path) -> None:
    assert run("store", "compact", "--data", folder).exit_code == 0
    checked = run("store", "check", "--data", folder)
    assert checked.exit_code == 0
    assert checked.stdout == "everything can be read\n"
    assert calls_in(folder / DATA_FILE) == CALLS


def test_check_names_what_is_damaged(folder: Path) -> None:
    path = folder / DATA_FILE
    connection = duckdb.connect(str(path))
    (block,) = connection.execute(
        "SELECT block_id FROM pragma_storage_info('tool_calls') "
        "WHERE column_name = 'trace_id' AND block_id >= 0 LIMIT 1"
    ).fetchall()[0]
    connection.close()
    content = bytearray(path.read_bytes())
    content[3 * 4096 + block * 262_144 + 1000] ^= 0xFF
    path.write_bytes(content)
    checked = run("store", "check", "--data", folder)
    assert checked.exit_code == 4
    assert "tool_calls.trace_id can't be read: " in checked.output
    assert "store repair --salvage" in checked.output


def test_repair_wants_to_know_how(folder: Path) -> None:
    done = run("store", "repair", "--data", folder)
    assert done.exit_code == 2
    assert "--move-wal-aside or --salvage" in done.output


def test_a_log_is_set_aside_on_command_only(folder: Path) -> None:
    log = folder / f"{DATA_FILE}.wal"
    log.write_bytes(b"no log at all" * 100)  # the engine would take it for an empty one
    assert run("store", "check", "--data", folder).exit_code == 4
    done = run("store", "repair", "--move-wal-aside", "--data", folder)
    assert done.exit_code == 0, done.output
    assert not log.exists()
    (aside,) = folder.glob("*.wal.damaged-*")
    assert str(aside) in done.output
    assert calls_in(folder / DATA_FILE) == CALLS


def test_json_is_what_operations_answer(server: tuple[Store, str]) -> None:
    _, url = server
    from fuseboard_collector.remote import RemoteReader

    with RemoteReader(url).operated(operations.RETENTION_PATH, {"dry_run": True}) as answer:
        assert json.loads(answer.read()) == {"before": None, "rows": 0, "why": ""}


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        ('{"max_bytes": 1e400}', 400, "max_bytes must be a number above 0, not inf"),
        ('{"days": true}', 400, "days must be a number above 0, not True"),
        ("[]", 400, "send a JSON object"),
        ("[" * 4000, 400, "recursion"),
        (" " * 5000, 413, "larger than 4096 bytes"),
    ],
)
def test_what_an_operation_is_wrongly_asked_is_said(
    server: tuple[Store, str], content: str, status: int, words: str
) -> None:
    request = Request(
        server[1] + operations.RETENTION_PATH,
        content.encode(),
        {"content-type": "application/json"},
    )
    with pytest.raises(HTTPError) as caught:
        urlopen(request, timeout=20)
    assert caught.value.code == status
    assert words in json.loads(caught.value.read())["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--max-size", "much"], ["'much' is no size", "20GB"]),
        (["serve", "--max-size", "1MB"], ["least that works"]),
        (["serve", "--memory-limit", "2"], ["'2' is no size"]),
        (["backup", "x", "--data", "a", "--collector", "http://b"], ["not both"]),
        (["retention", "--data", "/no/such/folder"], ["no data file in /no/such/folder"]),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], words: list[str]) -> None:
    done = run(*arguments)
    assert done.exit_code in {2, 4}
    for word in words:
        assert word in done.output
