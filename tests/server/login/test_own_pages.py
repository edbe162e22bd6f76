from __future__ import annotations

from typing import Any

import pytest
from tests.server.login.asking import Behind, ask, scope_of

from fuseboard_server.login import Login, TrustedHeader
from fuseboard_server.login.guarding import guarded

ADDRESS = "https://ops.example/fuse"
NAME = "X-Forwarded-User"


async def at(login: Login | None, scope: dict[str, Any]) -> Any:
    behind = Behind()
    return await ask(guarded(behind, login, ADDRESS), behind, scope)


@pytest.mark.parametrize("login", [None, TrustedHeader(NAME)], ids=["open", "login"])
@pytest.mark.parametrize(
    ("origins", "is_ours"),
    [
        ([], True), (["https://ops.example"], True), (["http://ops.example"], True),
        (["https://evil.example"], False), (["http://localhost:3000"], False),
        (["http://127.0.0.1"], False), (["https://ops.example.evil.example"], False),
        (["https://ops.example:8443"], False), (["null"], False), ([""], False),
        (["http://["], False), (["file://ops.example"], False), (["https://ops.example/"], False),
        (["https://kim@ops.example"], False),
        (["https://ops.example", "https://evil.example"], False),
    ],
)  # fmt: skip
async def test_a_page_of_another_site_gets_no_websocket(
    origins: list[str], is_ours: bool, login: Login | None
) -> None:
    headers = [(NAME, "kim"), *(("Origin", origin) for origin in origins)]
    answer = await at(login, scope_of("/fuse/_stcore/stream", *headers, kind="websocket"))
    assert bool(answer.reached) is is_ours
    if not is_ours:
        assert answer.status == 403
    inside = await at(
        login, scope_of("/fuse/_stcore/stream", *headers, kind="websocket", host="127.0.0.1:8501")
    )
    assert bool(inside.reached) is (origins in ([], ["https://ops.example"]))


async def test_a_page_of_this_machine_is_another_site_where_nobody_logs_in() -> None:
    behind = Behind()
    app = guarded(behind, None, "http://127.0.0.1:8501")
    for origin, count in (("http://localhost:9999", 0), ("http://127.0.0.1:8501", 1)):
        stream = scope_of("/_stcore/stream", ("Origin", origin), kind="websocket")
        answer = await ask(app, behind, stream)
        assert len(answer.reached) == count
    page = scope_of("/", ("Origin", "https://evil.example"))
    assert (await ask(app, behind, page)).status == 200, "a link from another site still opens it"
