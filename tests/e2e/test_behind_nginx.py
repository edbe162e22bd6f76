"""HC-45: behind a reverse proxy, under a path prefix, requests and websockets arrive."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.nginx import Nginx
from tests.processes import FUSEBOARD, Server, answers, free_port, wait_until

pytestmark = pytest.mark.e2e

STREAM = "/fuseboard/_stcore/stream"
HANDSHAKE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit",
}  # fmt: skip
STRIPS_THE_PATH = (("http://127.0.0.1:8501;", "http://127.0.0.1:8501/;"),)
SAYS_ITS_OWN_HOST = (("        proxy_set_header Host $http_host;\n", ""),)
FORGETS_UPGRADE = (("        proxy_set_header Upgrade $http_upgrade;\n", ""),)

Answer = tuple[int, dict[str, str], bytes]
Proxied = Callable[..., tuple[Server, Nginx]]


@pytest.fixture
def proxied(nginx_binary: Path, tmp_path: Path) -> Iterator[Proxied]:
    """Start a server that knows its public address, and nginx in front of it."""
    ends: list[Callable[[], None]] = []

    def start(replacements: tuple[tuple[str, str], ...] = ()) -> tuple[Server, Nginx]:
        port = free_port()
        server = Server(
            tmp_path / "data", tmp_path / "serve.log",
            options=("--ui-url", f"http://127.0.0.1:{port}/fuseboard/"),
        )  # fmt: skip
        nginx = Nginx(
            nginx_binary, tmp_path / "nginx", server.ui_port, port, replacements=replacements
        )
        ends.extend([server.end, nginx.stop])
        server.start()
        return server, nginx.start()

    yield start
    for end in reversed(ends):
        end()


@pytest.fixture
def remote(proxied: Proxied, nginx_binary: Path, tmp_path: Path) -> Iterator[Nginx]:
    """Start ``fuseboard dashboard`` on the data of another server, and nginx in front of it."""
    collector, _ = proxied()
    nginx = Nginx(nginx_binary, tmp_path / "remote", free_port())
    command = [
        str(FUSEBOARD), "dashboard", "--collector", collector.otlp_url,
        "--ui-port", str(nginx.ui_port), "--ui-url", nginx.url,
    ]  # fmt: skip
    with (tmp_path / "dashboard.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(
            lambda: answers(f"http://127.0.0.1:{nginx.ui_port}/healthz"),
            seconds=60, what="readiness of the dashboard",
        )  # fmt: skip
        yield nginx.start()
    finally:
        nginx.stop()
        running.kill()
        running.wait(10)


def ask(port: int, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(
            method, path, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        answer = connection.getresponse()
        body = b"" if answer.status == 101 else answer.read()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body
    finally:
        connection.close()


def shake_hands(nginx: Nginx, origin: str, path: str = STREAM) -> int:
    return ask(nginx.port, path, Origin=origin, **HANDSHAKE)[0]


def origin_of(nginx: Nginx) -> str:
    return f"http://127.0.0.1:{nginx.port}"


@pytest.mark.parametrize(
    "replacements",
    [(), STRIPS_THE_PATH, SAYS_ITS_OWN_HOST, STRIPS_THE_PATH + SAYS_ITS_OWN_HOST],
    ids=["as the example is", "strips the path", "says its own host", "both"],
)
def test_hc_45_health_pages_and_the_websocket_arrive(
    replacements: tuple[tuple[str, str], ...], proxied: Proxied
) -> None:
    _, nginx = proxied(replacements)
    for path in ("_stcore/health", "healthz", "readyz"):
        assert ask(nginx.port, f"/fuseboard/{path}")[0] == 200
    for page in ("", "errors?range=1h", "tool"):
        status, headers, body = ask(nginx.port, f"/fuseboard/{page}")
        assert (status, headers["content-type"].split(";")[0]) == (200, "text/html")
        assert b'id="root"' in body
    assert shake_hands(nginx, origin_of(nginx)) == 101
    assert shake_hands(nginx, "http://evil.example") == 403


def test_hc_45_a_dashboard_of_its_own_is_there_below_the_prefix(remote: Nginx) -> None:
    for path in ("_stcore/health", "healthz", "readyz"):
        assert ask(remote.port, f"/fuseboard/{path}")[0] == 200
    assert b'id="root"' in ask(remote.port, "/fuseboard/errors?range=1h")[2]
    assert shake_hands(remote, origin_of(remote)) == 101
    assert shake_hands(remote, "http://evil.example") == 403


def test_the_bare_prefix_leads_below_it(proxied: Proxied) -> None:
    """Relative links of a page that is open at the prefix itself would miss it."""
    _, nginx = proxied()
    status, headers, _ = ask(nginx.port, "/fuseboard?range=1h")
    assert (status, headers["location"]) == (301, "/fuseboard/?range=1h")


def test_nothing_else_of_the_site_is_ours(proxied: Proxied) -> None:
    _, nginx = proxied()
    assert ask(nginx.port, "/healthz")[0] == 404
    assert ask(nginx.port, "/fuseboardroom/")[0] == 404


def test_the_port_itself_answers_with_and_without_the_prefix(proxied: Proxied) -> None:
    server, _ = proxied()
    for prefix in ("", "/fuseboard"):
        assert ask(server.ui_port, f"{prefix}/_stcore/health")[0] == 200
        assert ask(server.ui_port, f"{prefix}/readyz")[0] == 200
        status, _, body = ask(server.ui_port, f"{prefix}/v1/traces", "POST")
        assert status == 404
        assert server.otlp_url in json.loads(body)["error"]
        assert ask(server.ui_port, f"{prefix}/_stcore/stream", **HANDSHAKE)[0] == 101


def test_the_public_address_is_the_one_that_is_told(proxied: Proxied) -> None:
    server, nginx = proxied()
    assert f"Dashboard  {nginx.url} " in server.log.read_text()
    note = json.loads((server.data / "server.json").read_text())
    assert (note["public"], note["dashboard"]) == (nginx.url, server.ui_url)
    _, _, body = ask(server.otlp_port, "/")
    assert nginx.url in json.loads(body)["error"]


def test_a_proxy_that_passes_no_upgrade_on_is_told_so_once(proxied: Proxied) -> None:
    server, nginx = proxied(FORGETS_UPGRADE)
    for _ in range(2):
        status, _, body = ask(nginx.port, STREAM, Origin=origin_of(nginx), **HANDSHAKE)
        assert status == 426
        assert "Upgrade and Connection" in json.loads(body)["error"]
    assert server.log.read_text().count("reverse proxy in front has to pass on") == 1
