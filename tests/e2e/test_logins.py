"""Logins on real processes: what a proxy says, what a spoofer says, and what must never be told."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, blocks
from tests.nginx import Nginx
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider
from tests.processes import FUSEBOARD, Server, answers, free_port, wait_until

pytestmark = pytest.mark.e2e

STREAM = "/fuseboard/_stcore/stream"
HANDSHAKE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit",
}  # fmt: skip
(AUTH,) = blocks((ROOT / "docs" / "reverse-proxy.md").read_text(), "nginx")
HEADER = "X-Forwarded-User"
KIM = {"Authorization": "Basic " + base64.b64encode(b"kim:pa55").decode()}
COOKIE_SECRET = "c00kie-s3cret-c00kie-s3cret-c00kie"
Headers = dict[str, str] | list[tuple[str, str]]


def ask(
    port: int,
    path: str,
    headers: Headers = (),
    host: str = "127.0.0.1",  # type: ignore[assignment]
) -> tuple[int, str]:
    """Send exactly these headers, also the same one twice."""
    connection = http.client.HTTPConnection(host, port, timeout=20)
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    try:
        connection.putrequest("GET", path)
        for name, value in pairs:
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, "" if answer.status == 101 else answer.read().decode()
    finally:
        connection.close()


@pytest.fixture
def running() -> Iterator[list[Callable[[], None]]]:
    ends: list[Callable[[], None]] = []
    yield ends
    for end in reversed(ends):
        end()


@pytest.fixture
def behind(
    nginx_binary: Path, tmp_path: Path, running: list[Callable[[], None]]
) -> tuple[Server, Nginx]:
    """Start a server that believes a header, behind an nginx that asks for a password."""
    passwords = tmp_path / "fuseboard.htpasswd"
    passwords.write_text("kim:{PLAIN}pa55\n")
    port = free_port()
    server = Server(
        tmp_path / "data", tmp_path / "serve.log",
        options=("--ui-url", f"http://127.0.0.1:{port}/fuseboard", "--trust-user-header", HEADER),
    )  # fmt: skip
    more = AUTH.replace("/etc/nginx/dashboard.htpasswd", str(passwords))
    nginx = Nginx(nginx_binary, tmp_path / "nginx", server.ui_port, port, more=more)
    running.extend([server.end, nginx.stop])
    server.start()
    return server, nginx.start()


def test_hc_45_a_proxy_logs_people_in_pages_and_websockets(behind: tuple[Server, Nginx]) -> None:
    _, nginx = behind
    origin = {"Origin": f"http://127.0.0.1:{nginx.port}"}
    assert ask(nginx.port, "/fuseboard/errors?range=1h", KIM)[0] == 200
    assert ask(nginx.port, STREAM, {**HANDSHAKE, **origin, **KIM})[0] == 101
    assert ask(nginx.port, "/fuseboard/errors")[0] == 401
    foreign = {"Origin": "http://localhost:3000"}
    assert ask(nginx.port, STREAM, {**HANDSHAKE, **foreign, **KIM})[0] == 403
    # What a client sends under the header's name never arrives.
    spoofed = {HEADER: "eve, root", "X_Forwarded_User": "eve"}
    assert ask(nginx.port, "/fuseboard/", {**KIM, **spoofed})[0] == 200


def test_without_the_header_nothing_is_served_but_health(behind: tuple[Server, Nginx]) -> None:
    server, _ = behind
    person = {"Accept": "text/html"}
    for path in ("/fuseboard/", "/", "/errors", "/_stcore/metrics", "/static/js/x.js"):
        status, page = ask(server.ui_port, path, person)
        assert status == 401
        assert "<h1>Not logged in</h1>" in page
    status, said = ask(server.ui_port, STREAM, HANDSHAKE)
    assert status == 401
    assert HEADER in json.loads(said)["error"]
    elsewhere = json.loads(ask(server.ui_port, "/v1/traces")[1])["error"]
    assert "the server's log" in elsewhere
    assert server.otlp_url not in elsewhere
    assert server.otlp_url in server.log.read_text()
    for path in ("/healthz", "/readyz", "/_stcore/health"):
        for prefix in ("", "/fuseboard"):
            assert ask(server.ui_port, f"{prefix}{path}")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        [(HEADER, "kim"), (HEADER, "eve")], [("X_Forwarded_User", "kim")], [(HEADER, "a,b")],
        [(HEADER, "k" * 257)], [(HEADER, "")], [(f"{HEADER} ", "kim")],
    ],
    ids=str,
)  # fmt: skip
def test_smuggled_headers_are_nobody(
    headers: list[tuple[str, str]], behind: tuple[Server, Nginx]
) -> None:
    server, _ = behind
    assert ask(server.ui_port, "/fuseboard/", [(HEADER, "kim")])[0] == 200
    assert ask(server.ui_port, "/fuseboard/", headers)[0] in {400, 401}
    assert ask(server.ui_port, STREAM, [*HANDSHAKE.items(), *headers])[0] in {400, 401}


def test_doctor_says_which_login_is_on(behind: tuple[Server, Nginx]) -> None:
    server, nginx = behind
    assert f"Login      header {HEADER} of a proxy at this machine" in server.log.read_text()
    done = subprocess.run(
        [str(FUSEBOARD), "doctor", "--data", str(server.data)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert f"dashboard: at {nginx.url}, login: header {HEADER}" in done.stdout


def own_address() -> str:
    """Return an address of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


def test_beyond_loopback_a_login_is_enough_and_the_network_is_not_believed(
    tmp_path: Path, running: list[Callable[[], None]]
) -> None:
    address = own_address()
    server = Server(
        tmp_path / "data", tmp_path / "serve.log",
        options=("--ui-host", "0.0.0.0", "--trust-user-header", HEADER),
    )  # fmt: skip
    running.append(server.end)
    server.start()
    spoofs: list[Headers] = [
        {HEADER: "eve"}, {HEADER: "eve", "X-Forwarded-For": "127.0.0.1"},
        {HEADER: "eve", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
    ]  # fmt: skip
    for headers in spoofs:
        assert ask(server.ui_port, "/", headers, host=address)[0] == 401
    assert ask(server.ui_port, "/healthz", host=address)[0] == 200
    # A proxy on this machine is believed, whatever it says of whom it asks for.
    forwarded = {HEADER: "kim", "X-Forwarded-For": "203.0.113.9"}
    assert ask(server.ui_port, "/", forwarded)[0] == 200
    assert "without authentication" not in server.log.read_text()


def test_secrets_of_a_login_are_told_to_nobody(
    tmp_path: Path, running: list[Callable[[], None]]
) -> None:
    provider = Provider({"kim": {"email": "kim@example.com"}}).start()
    running.append(provider.stop)
    (tmp_path / "oidc.toml").write_text(
        f'[auth]\nserver_metadata_url = "{provider.metadata_url}"\nclient_id = "{CLIENT_ID}"\n'
        f'client_secret = "{CLIENT_SECRET}"\ncookie_secret = "{COOKIE_SECRET}"\n'
        'allowed_domains = ["example.com"]\n'
    )
    server = Server(
        tmp_path / "data", tmp_path / "serve.log",
        environment={"FUSEBOARD_OIDC_CONFIG": str(tmp_path / "oidc.toml")},
    )  # fmt: skip
    running.append(server.end)
    server.start()
    assert ask(server.ui_port, "/", {"Cookie": "_streamlit_user=forged"})[0] == 401
    provider.stop()
    _, page = ask(server.ui_port, "/login?next=%2Ferrors")
    told = [page, server.log.read_text(), (server.data / "server.json").read_text()]
    for command in (["doctor"], ["export", "calls"], ["--version"]):
        where = [] if command == ["--version"] else ["--data", str(server.data)]
        done = subprocess.run(
            [str(FUSEBOARD), *command, *where], capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        told.extend([done.stdout, done.stderr])
    assert server.process is not None
    told.append(Path(f"/proc/{server.process.pid}/cmdline").read_text())
    assert any("OpenID Connect at" in text for text in told)
    assert not [text for text in told if CLIENT_SECRET in text or COOKIE_SECRET in text]


def test_a_dashboard_of_its_own_has_the_same_logins(
    tmp_path: Path, running: list[Callable[[], None]]
) -> None:
    port = free_port()
    command = [
        str(FUSEBOARD), "dashboard", "--collector", "http://127.0.0.1:9", "--host", "0.0.0.0",
        "--ui-port", str(port),
    ]  # fmt: skip
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    for option in ("--oidc-config", "--trust-user-header", "--host 127.0.0.1", "--insecure"):
        assert option in refused.stderr
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--trust-user-header", HEADER], stdout=log, stderr=log
        )
    running.append(lambda: process.wait(10) and None)
    running.append(process.kill)
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), seconds=60, what="readiness")
    assert ask(port, "/")[0] == 401
    assert ask(port, "/", {HEADER: "kim"})[0] == 200
