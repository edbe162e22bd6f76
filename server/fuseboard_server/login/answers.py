"""Answers in place of the dashboard: a small page for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from http import HTTPStatus
from typing import Final

from fuseboard_server.dispatch import Scope, Send
from fuseboard_server.login.verdict import Refusal, values_of

Header = tuple[bytes, bytes]

STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 34rem; margin: 16vh auto;
  padding: 0 1.5rem; }
p.brand { font-weight: 650; opacity: .75; margin-bottom: 2rem; }
h1 { font-size: 1.6rem; margin: 0 0 .6rem; }
p.hint { margin-top: 2.4rem; font-size: .85rem; opacity: .75; }
a.way { display: inline-block; margin-top: .8rem; padding: .55rem 1.2rem; border: 1px solid;
  border-radius: .4rem; color: inherit; text-decoration: none; font-weight: 600; }
a.way:hover, a.way:focus-visible { text-decoration: underline; outline: 2px solid;
  outline-offset: 2px; }
""".strip()
PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · fuseboard</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<p class="brand">fuseboard</p>
<h1>{title}</h1>
<p>{text}</p>
{way}{hint}</main>
</body>
</html>
"""
POLICY: Final = (
    b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    b"base-uri 'none'; form-action 'none'"
)
SAFE: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)


def page(refusal: Refusal, label: str = "", href: str = "") -> bytes:
    """Return a refusal for people.

    Args:
        refusal: Its texts are escaped here, like everything else.
        label: Of the link below; empty: there is none.
        href: Where it leads.
    """
    way = f'<a class="way" href="{escape(href)}">{escape(label)}</a>\n' if label else ""
    hint = escape(refusal.hint)
    text = PAGE.format(
        title=escape(refusal.title), style=STYLE, text=escape(refusal.text), way=way,
        hint=f'<p class="hint">For whoever runs this server: {hint}</p>\n' if hint else "",
    )  # fmt: skip
    return text.encode()


def wants_page(scope: Scope) -> bool:
    """Tell whether a request is a person's who opens a page."""
    accepted = ",".join(values_of(scope, b"accept"))
    return scope["type"] == "http" and scope["method"] == "GET" and "text/html" in accepted


async def send_page(
    scope: Scope, send: Send, status: int, body: bytes, headers: Iterable[Header] = ()
) -> None:
    """Answer a request with a page that runs nothing and is framed nowhere."""
    kind = b"text/html; charset=utf-8"
    await _send(scope, send, status, body, [
        (b"content-type", kind), (b"content-security-policy", POLICY), *headers,
    ])  # fmt: skip


async def send_error(scope: Scope, send: Send, status: int, message: str) -> None:
    """Answer a request, or a websocket's, in JSON, in words for whoever wrote the client."""
    kind = HTTPStatus(status).phrase.title().replace(" ", "")
    body = json.dumps({"error": message, "kind": kind}).encode()
    await _send(scope, send, status, body, [(b"content-type", b"application/json")])


async def send_elsewhere(
    scope: Scope, send: Send, location: str, headers: Iterable[Header] = ()
) -> None:
    """Answer a request by naming another address."""
    await _send(scope, send, HTTPStatus.FOUND, b"", [(b"location", location.encode()), *headers])


async def _send(scope: Scope, send: Send, status: int, body: bytes, headers: list[Header]) -> None:
    kind = "http" if scope["type"] == "http" else "websocket.http"
    if kind != "http" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    length = (b"content-length", str(len(body)).encode())
    await send({
        "type": f"{kind}.response.start", "status": int(status),
        "headers": [*headers, *SAFE, length],
    })  # fmt: skip
    is_head = scope.get("method") == "HEAD"
    await send({"type": f"{kind}.response.body", "body": b"" if is_head else body})
