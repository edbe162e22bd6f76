from __future__ import annotations

import json
from typing import Any

import pytest

from fuseboard_server.below_path import BelowPath


class World:
    """An application below a path, which remembers where it was asked."""

    def __init__(self, path: str) -> None:
        self.asked: list[tuple[str, bytes | None]] = []
        self.sent: list[Any] = []
        self.app = BelowPath(self._app, path)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append((scope.get("path", "-"), scope.get("raw_path")))

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def ask(self, path: str, kind: str = "http", raw: bytes | None = None) -> Any:
        scope = {"type": kind, "path": path, "raw_path": raw, "headers": []}
        await self.app(scope, None, self._send)  # type: ignore[arg-type]
        return self.asked[-1] if self.asked else None


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        ("/", "/ops/fuse/"),
        ("/errors", "/ops/fuse/errors"),
        ("/ops/fuse", "/ops/fuse"),
        ("/ops/fuse/", "/ops/fuse/"),
        ("/ops/fuse/errors", "/ops/fuse/errors"),
        ("/ops/fuses", "/ops/fuse/ops/fuses"),
        ("/ops", "/ops/fuse/ops"),
    ],
)
async def test_with_and_without_the_prefix_the_same_page_is_meant(path: str, arrives: str) -> None:
    world = World("/ops/fuse")
    assert await world.ask(path) == (arrives, None)
    assert await world.ask(path, "websocket", path.encode()) == (arrives, arrives.encode())


async def test_two_slashes_in_front_are_left_to_who_refuses_them() -> None:
    assert await World("/ops").ask("//evil.example/x") == ("//evil.example/x", None)


async def test_without_a_path_nothing_is_moved() -> None:
    assert await World("").ask("/errors", raw=b"/errors") == ("/errors", b"/errors")


@pytest.mark.parametrize("path", ["", "/ops"])
async def test_the_lifespan_passes(path: str) -> None:
    world = World(path)
    await world.app({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
    assert world.asked == [("-", None)]


@pytest.mark.parametrize("path", ["", "/ops"])
async def test_a_websocket_that_is_asked_for_as_a_page_is_explained_and_logged_once(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(path)
    for _ in range(3):
        await world.ask(f"{path}/_stcore/stream")
    assert world.asked == []
    start, body = world.sent[:2]
    assert (start["status"], dict(start["headers"])[b"upgrade"]) == (426, b"websocket")
    assert "Upgrade and Connection" in json.loads(body["body"])["error"]
    assert len(caplog.records) == 1
    assert await world.ask(f"{path}/_stcore/stream", "websocket") is not None
