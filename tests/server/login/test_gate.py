from __future__ import annotations

import json
from html import unescape
from typing import Any
from urllib.parse import quote, unquote

import pytest
from tests.server.login.asking import Behind, ask, scope_of

from fuseboard_server.login.gate import ELSEWHERE, HEALTH, VIEWER, Gate
from fuseboard_server.login.verdict import Refusal, Verdict, Viewer, Way

ADDRESS = "https://ops.example/fuse"
DOORS: dict[str, Verdict] = {
    "kim": Viewer("kim"),
    "nobody": Refusal(401, "Log in", "Do <log> in.", "set it up", Way.LOG_IN),
    "eve": Refusal(403, "No access", "eve has none.", way=Way.LOG_OUT),
    "lost": Refusal(401, "Not logged in", "By the proxy."),
}


class Door:
    def __init__(self, who: str) -> None:
        self.who = who

    def judge(self, scope: Any) -> Verdict:
        return DOORS[self.who]


async def at(who: str, scope: dict[str, Any]) -> Any:
    behind = Behind()
    gate = Gate(behind, Door(who), ADDRESS, open_paths=["/login"])
    return await ask(gate, behind, scope)


@pytest.mark.parametrize(
    "path",
    ["/fuse/", "/fuse/errors", "/fuse/_stcore/host-config", "/fuse/_stcore/metrics",
     "/fuse/_stcore/agent/interact", "/fuse/media/abc.csv", "/fuse/static/js/index.js",
     "/healthz", "/fuse/healthz/", "/fuse//healthz", "/fuse/healthz/../errors", "/fuse/HEALTHZ",
     "//fuse/healthz", "/fuse/_stcore/health/x", "/fuse/_stcore/upload_file/a/b"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS"])
async def test_whatever_is_not_listed_is_shut(path: str, method: str) -> None:
    answer = await at("nobody", scope_of(path, method=method))
    assert answer.reached == []
    assert answer.status == 401
    assert (answer.body == "") is (method == "HEAD")


@pytest.mark.parametrize("path", [*HEALTH, "/login"])
async def test_health_checks_and_the_way_in_are_open_for_reading(path: str) -> None:
    for method, status in (("GET", 200), ("HEAD", 200), ("POST", 401), ("DELETE", 401)):
        answer = await at("nobody", scope_of(f"/fuse{path}", method=method))
        assert answer.status == status
    assert (await at("nobody", scope_of(f"/fuse{path}", kind="websocket"))).status == 401


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_who_may_gets_through_under_the_name_that_the_door_says(kind: str) -> None:
    claims = [("X-Fuseboard-Viewer", "eve"), ("X_Fuseboard_Viewer", "eve"), ("X-Other", "1")]
    answer = await at("kim", scope_of("/fuse/errors", *claims, kind=kind))
    (scope,) = answer.reached
    assert scope["headers"] == [
        (b"host", b"ops.example"), (b"x-other", b"1"), (VIEWER, b"kim")
    ]  # fmt: skip
    opened = await at("kim", scope_of("/fuse/healthz", *claims))
    assert VIEWER not in [name for name, _ in opened.reached[0]["headers"]]


async def test_a_name_of_any_characters_travels_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOORS, "kim", Viewer("Jürgen\r\nx: y"))
    answer = await at("kim", scope_of("/fuse/"))
    assert answer.reached[0]["headers"][-1] == (VIEWER, quote("Jürgen\r\nx: y").encode())


async def test_the_lifespan_passes() -> None:
    answer = await at("nobody", {"type": "lifespan"})
    assert answer.reached == [{"type": "lifespan"}]


async def test_a_server_that_knows_no_answer_to_a_handshake_closes_it() -> None:
    answer = await at("nobody", {**scope_of("/fuse/", kind="websocket"), "extensions": {}})
    assert answer.sent == [{"type": "websocket.close", "code": 1008}]
    assert answer.reached == []


async def test_programs_are_told_in_words_that_the_collector_is_elsewhere() -> None:
    answer = await at("nobody", scope_of("/fuse/v1/traces", method="POST"))
    assert answer.header("content-type") == ["application/json"]
    assert json.loads(answer.body) == {
        "error": f"Log in: Do <log> in. (set it up) ({ELSEWHERE})", "kind": "Unauthorized",
    }  # fmt: skip
    assert ELSEWHERE not in (await at("nobody", scope_of("/fuse/errors"))).body, (
        "nobody else's business"
    )


async def test_an_open_page_is_told_what_its_viewer_can_do() -> None:
    answer = await at("nobody", scope_of("/fuse/_stcore/host-config"))
    assert "Reload this page to log in again" in json.loads(answer.body)["error"]


PERSON = ("Accept", "text/html,*/*;q=0.8")


async def test_people_get_a_page_that_leads_back_to_what_they_asked_for() -> None:
    query = "range=1h&tool=a%26b&region=%3Cscript%3E"
    answer = await at("nobody", scope_of("/fuse/errors", PERSON, query=query))
    assert answer.status == 401
    assert "<h1>Log in</h1>" in answer.body
    assert "Do &lt;log&gt; in." in answer.body
    assert "For whoever runs this server: set it up" in answer.body
    link = unescape(answer.body.split('class="way" href="')[1].split('"')[0])
    begin, _, back = link.partition("?next=")
    assert begin == f"{ADDRESS}/login"
    assert unquote(back) == f"/fuse/errors?{query}"


async def test_a_path_from_outside_can_not_leave_its_attribute() -> None:
    answer = await at("nobody", scope_of('/fuse/"><script>x</script>', PERSON, query='a="><b>'))
    assert "<script>" not in answer.body
    assert '"><b>' not in answer.body


@pytest.mark.parametrize(("who", "link"), [("eve", f"{ADDRESS}/auth/logout"), ("lost", None)])
async def test_other_refusals_have_the_link_that_helps_or_none(who: str, link: str | None) -> None:
    answer = await at(who, scope_of("/fuse/", PERSON))
    assert (f'href="{link}"' in answer.body) is bool(link)
    assert ('class="way"' in answer.body) is bool(link)


async def test_pages_run_nothing_are_framed_nowhere_and_kept_nowhere() -> None:
    answer = await at("nobody", scope_of("/fuse/", PERSON))
    (policy,) = answer.header("content-security-policy")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.header("cache-control") == ["no-store"]
    assert answer.header("content-length") == [str(len(answer.body.encode()))]
