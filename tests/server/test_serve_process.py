"""`fuseboard serve` as a real process: what it says, serves, refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import grpc
import pytest
from tests.processes import free_port, wait_until

from fuseboard_server.exits import Exit

pytestmark = pytest.mark.e2e

ANY_PORTS = ("--ui-port", "0", "--otlp-http-port", "0", "--otlp-grpc-port", "0")
FLAGS = ANY_PORTS[::2]
HOLD = """
import sys, time, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("CREATE TABLE IF NOT EXISTS mine (x INT)")
print("held", flush=True)
time.sleep(600)
"""


def status(url: str, **headers: str) -> int:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_says_where_it_is_and_ends_cleanly(
    serve: Callable[..., Any], number: signal.Signals
) -> None:
    served = serve("--alert-time-scale", "0.5")
    output = served.running.output
    assert served.ui_url in output
    assert served.otlp_url in output
    assert str(served.data) in output
    assert "time scale 0.5" in output
    note = json.loads((served.data / "server.json").read_text())
    assert note == {
        "pid": served.running.pid, "dashboard": served.ui_url, "collector": served.otlp_url,
        "grpc": f"127.0.0.1:{served.grpc_port}", "public": "",
        "login": "",
    }  # fmt: skip
    assert served.running.end(number) == 0
    assert served.running.errors == ""
    assert "stopped" in served.running.output
    assert sorted(path.name for path in served.data.iterdir()) == [
        "fuseboard.duckdb", "fuseboard.duckdb.health",
    ]  # fmt: skip
    assert served.data.stat().st_mode & 0o077 == 0, "calls are nobody else's business"


def test_each_port_serves_its_own_and_foreign_hosts_get_nothing(
    serve: Callable[..., Any],
) -> None:
    served = serve("--allow-host", "board.example")
    ui, otlp = served.ui_url, served.otlp_url
    for base in (ui, otlp):
        assert status(f"{base}/healthz") == 200
        assert status(f"{base}/readyz") == 200
        assert status(f"{base}/healthz", Host="evil.example") == 421
        assert status(f"{base}/healthz", Host="board.example") == 200
    assert status(f"{ui}/") == 200
    assert status(f"{ui}/_stcore/health") == 200
    assert status(f"{ui}/v1/traces") == 404
    assert status(f"{ui}/api/v1/stats") == 404
    assert status(f"{otlp}/") == 404
    assert status(f"{otlp}/_stcore/health") == 404
    assert status(f"{otlp}/api/v1/stats") == 200


def test_it_takes_otlp_over_grpc(serve: Callable[..., Any]) -> None:
    served = serve()
    assert f"OTLP/gRPC  127.0.0.1:{served.grpc_port}" in served.running.output
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc_port}") as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        assert export(b"", timeout=20) == b""
        with pytest.raises(grpc.RpcError) as caught:
            export(b"\xff", timeout=20)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert served.running.end() == 0
    assert "Traceback" not in served.running.errors


def test_grpc_can_be_off(serve: Callable[..., Any]) -> None:
    served = serve("--otlp-grpc-port", "off")
    assert "OTLP/gRPC  off" in served.running.output
    assert json.loads((served.data / "server.json").read_text())["grpc"] == ""
    with socket.socket() as other:
        other.bind(("127.0.0.1", served.grpc_port))


@pytest.mark.parametrize(("options", "evaluates"), [((), True), (("--no-alerts",), False)])
def test_alerts_can_be_left_to_another_server(
    serve: Callable[..., Any], options: tuple[str, ...], evaluates: bool
) -> None:
    served = serve(*options)
    assert status(f"{served.ui_url}/readyz") == 200
    assert served.running.end() == 0
    assert ("Alerts     off" in served.running.output) is not evaluates
    with duckdb.connect(str(served.data / "fuseboard.duckdb"), read_only=True) as connection:
        saved = connection.execute("SELECT count(*) FROM alert_memory").fetchall()
    assert saved == [(1 if evaluates else 0,)]


def test_it_stops_while_a_browser_is_connected(serve: Callable[..., Any]) -> None:
    served = serve()
    with socket.create_connection(("127.0.0.1", served.ui_port)) as page:
        page.sendall(
            b"GET /_stcore/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        page.settimeout(20)
        assert b"101" in page.recv(100)
        assert served.running.end() == 0
    assert "Traceback" not in served.running.errors


def test_it_stops_while_a_body_is_half_sent(serve: Callable[..., Any]) -> None:
    """The client gets an answer that lets it keep its data, and the log no traceback."""
    served = serve()
    with socket.create_connection(("127.0.0.1", served.otlp_port)) as client:
        client.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        client.settimeout(20)
        assert served.running.end() == 0
        assert b" 503 " in client.recv(1000).splitlines()[0]
    assert "Traceback" not in served.running.errors


def test_a_signal_before_it_is_ready_ends_it_too(start: Callable[..., Any], tmp_path: Path) -> None:
    running = start("serve", "--data", str(tmp_path / "data"), *ANY_PORTS)
    assert running.end(signal.SIGTERM) in {0, -signal.SIGTERM}
    assert "Traceback" not in running.errors


@pytest.mark.parametrize("flag", FLAGS)
def test_a_port_in_use_is_named_and_nothing_is_touched(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, flag: str
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        data = tmp_path / "data"
        done = cli("serve", "--data", str(data), *ANY_PORTS, flag, port)
    assert done.returncode == Exit.USAGE
    assert port in done.stderr
    assert flag in done.stderr
    assert not data.exists()


def test_a_second_server_on_the_same_data_is_refused_and_names_the_first(
    serve: Callable[..., Any], cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    served = serve()
    done = cli("serve", "--data", str(served.data), *ANY_PORTS)
    assert done.returncode == Exit.DATA_IN_USE
    assert str(served.running.pid) in done.stderr
    assert "--data" in done.stderr
    assert "Traceback" not in done.stderr
    assert (served.data / "server.json").exists(), "the first one's note is still there"
    assert status(f"{served.otlp_url}/readyz") == 200


def test_data_held_by_a_foreign_process_is_one_clear_message(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        done = cli("serve", "--data", str(tmp_path), *ANY_PORTS)
        assert done.returncode == Exit.DATA_IN_USE
        assert str(holder.pid) in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert cli("export", "calls", "--data", str(tmp_path)).returncode == Exit.DATA_IN_USE
    finally:
        holder.kill()
        holder.wait(20)
        holder.stdout.close()


@pytest.mark.parametrize("command", ["serve", "export"])
def test_a_damaged_file_is_left_as_it_is(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, command: str
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    content = b"no database at all\n" * 500
    path.write_bytes(content)
    rest = ANY_PORTS if command == "serve" else ["calls"]
    done = cli(command, "--data", str(tmp_path), *rest)
    assert done.returncode == Exit.DATA_UNUSABLE
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir() if one.name != "xdg"] == [path.name]


def test_a_file_of_a_newer_version_is_left_as_it_is(
    serve: Callable[..., Any], cli: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    import duckdb

    served = serve()
    assert served.running.end() == 0
    path = served.data / "fuseboard.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET value = '999' WHERE key = 'schema_version'")
        assert connection.execute("SELECT count(*) FROM meta WHERE value = '999'").fetchall() == [
            (1,)
        ]
    before = path.read_bytes()
    done = cli("serve", "--data", str(served.data), *ANY_PORTS)
    assert done.returncode == Exit.DATA_UNUSABLE
    assert "newer" in done.stderr
    assert path.read_bytes() == before


def test_a_data_folder_that_can_not_be_made_is_named(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    data = tmp_path / "file" / "data"
    done = cli("serve", "--data", str(data), *ANY_PORTS)
    assert done.returncode == Exit.DATA_UNUSABLE
    assert str(data) in done.stderr
    assert "--data" in done.stderr


def test_the_default_data_folder_is_used_and_printed(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    running = start(
        "serve", *ANY_PORTS,
        XDG_DATA_HOME=str(tmp_path), FUSEBOARD_DATA="",
    )  # fmt: skip
    running.wait_for("Ctrl-C stops it.")
    assert str(tmp_path / "fuseboard") in running.output
    assert (tmp_path / "fuseboard" / "fuseboard.duckdb").exists()
    assert running.end() == 0


def test_listening_everywhere_is_warned_of_and_works(serve: Callable[..., Any]) -> None:
    served = serve("--host", "0.0.0.0", "--insecure")
    assert "without authentication" in served.running.errors
    assert status(f"{served.ui_url}/healthz", Host="192.0.2.1") == 200
    assert status(f"{served.ui_url}/healthz", Host="evil.example") == 421
    assert served.running.end() == 0


def test_ports_refuse_until_there_is_something_to_answer(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    """Not one connection may be accepted and kept waiting: an agent at its end gives up then."""
    ports = {flag: free_port() for flag in FLAGS}
    running = start(
        "serve", "--data", str(tmp_path / "data"),
        *(word for flag, port in ports.items() for word in (flag, str(port))),
    )  # fmt: skip

    def is_answered() -> bool:
        began = time.monotonic()
        try:
            return status(f"http://127.0.0.1:{ports['--otlp-http-port']}/healthz") == 200
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            return False
        finally:
            assert time.monotonic() - began < 5, "it was accepted and had to wait"

    wait_until(is_answered, seconds=60, what="the first answer")
    assert running.end() == 0


def test_tokens_open_the_doors_beyond_loopback(start: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3nd\n")
    otlp, grpc_port = free_port(), free_port()
    running = start(
        "serve", "--data", str(tmp_path / "data"), "--host", "0.0.0.0", "--ui-host", "127.0.0.1",
        "--ui-port", "0", "--otlp-http-port", str(otlp), "--otlp-grpc-port", str(grpc_port),
        "--token-file", str(tmp_path / "token"), FUSEBOARD_READ_TOKEN="r3ad",
    )  # fmt: skip
    running.wait_for("Ctrl-C stops it.")
    assert "warning" not in running.errors
    url = f"http://127.0.0.1:{otlp}"
    assert status(f"{url}/metrics") == 401
    assert status(f"{url}/metrics", Authorization="Bearer s3nd") == 401
    assert status(f"{url}/metrics", Authorization="Bearer r3ad") == 200
    assert status(f"{url}/healthz") == 200
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as caught:
            export(b"", timeout=20)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert export(b"", timeout=20, metadata=[("authorization", "Bearer s3nd")]) == b""
    assert running.end() == 0
    for secret in ("s3nd", "r3ad"):
        assert secret not in running.output + running.errors
