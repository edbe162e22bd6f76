"""How tests ask an ASGI application, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fuseboard_server.running import PEER

HERE = ("127.0.0.1", 50000)


def scope_of(
    path: str = "/", *headers: tuple[str, str], kind: str = "http", method: str = "GET",
    query: str = "", peer: tuple[str, int] | None = HERE, host: str = "ops.example",
) -> dict[str, Any]:  # fmt: skip
    """Return a request as uvicorn hands it on; header values as their bytes are sent."""
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    scope: dict[str, Any] = {
        "type": kind, "path": path, "query_string": query.encode(), PEER: peer,
        "headers": [(b"host", host.encode()), *raw],
        "extensions": {"websocket.http.response": {}} if kind == "websocket" else {},
    }  # fmt: skip
    return {**scope, "method": method} if kind == "http" else scope


@dataclass
class Answer:
    """What was sent, and what reached the application behind."""

    sent: list[Any] = field(default_factory=list)
    reached: list[Any] = field(default_factory=list)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> str:
        return b"".join(one.get("body", b"") for one in self.sent[1:]).decode()

    def header(self, name: str) -> list[str]:
        wanted = name.encode()
        return [value.decode() for found, value in self.sent[0]["headers"] if found == wanted]


class Behind:
    """An application behind something: answers as it is told, and remembers."""

    def __init__(self, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self._status = status
        self._headers = [(name.encode(), value.encode()) for name, value in headers]
        self.reached: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.reached.append(scope)
        if scope["type"] == "http":
            start = {"status": self._status, "headers": self._headers}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body", "body": b"behind"})


async def ask(app: Any, behind: Behind, scope: dict[str, Any]) -> Answer:
    """Ask once."""
    answer = Answer(reached=behind.reached)

    async def send(message: Any) -> None:
        answer.sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    await app(scope, receive, send)
    return answer
