"""Asks an address what an agent would ask it: whether it takes telemetry as OTLP over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import urlsplit

TRACES_PATH = "/v1/traces"
OTLP = "application/x-protobuf"
MAX_REPLY = 10_000
"""Bytes of an answer that are looked at; an error message is shorter."""
COME_BACK = frozenset({429, 502, 503, 504})
"""Statuses at which OTLP has a client keep its data and try again."""
NEEDS_RIGHTS = frozenset({401, 403})


class Kind(Enum):
    """What is at an address."""

    OTLP = auto()
    SILENCE = auto()
    REFUSES = auto()
    BUSY = auto()
    ASTRAY = auto()
    ELSE = auto()


@dataclass(frozen=True, slots=True)
class Reply:
    """What was found.

    Attributes:
        detail: The answer in words; of a fuseboard where OTLP is not taken, its own hint.
    """

    kind: Kind
    detail: str = ""


def probe(url: str, headers: Iterable[tuple[str, str]] = (), timeout: float = 3.0) -> Reply:
    """Send an empty export request, which changes nothing, and judge the answer.

    Args:
        url: Base address, for example ``http://127.0.0.1:4318``.
        headers: What an agent would send along, for example its authorization.
        timeout: Seconds to wait for each step.
    """
    parts = urlsplit(url)
    connection = _connection(parts.scheme, parts.netloc, timeout)
    try:
        # An empty message has no bytes in protobuf.
        path = parts.path.rstrip("/") + TRACES_PATH
        connection.request("POST", path, b"", {**dict(headers), "Content-Type": OTLP})
        answer = connection.getresponse()
        body = answer.read(MAX_REPLY)
    except ConnectionRefusedError:
        return Reply(Kind.SILENCE)
    except http.client.HTTPException:
        return Reply(Kind.ELSE, "what listens there does not speak HTTP/1.1, maybe gRPC")
    except OSError as error:
        return Reply(Kind.SILENCE, error.strerror or str(error))
    finally:
        connection.close()
    return _judge(answer.status, answer.getheader("Content-Type", ""), body)


def _connection(scheme: str, netloc: str, timeout: float) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    return kind(netloc.rpartition("@")[2], timeout=timeout)


def _judge(status: int, content_type: str, body: bytes) -> Reply:
    said = f"POST {TRACES_PATH} was answered {status}"
    if status == http.client.OK:
        is_page = content_type.lower().startswith("text/")
        return Reply(Kind.ELSE, f"{said} with {content_type}") if is_page else Reply(Kind.OTLP)
    if status in NEEDS_RIGHTS:
        return Reply(Kind.REFUSES, said)
    if status in COME_BACK:
        return Reply(Kind.BUSY, said)
    hint = _hint(body)
    return Reply(Kind.ASTRAY, hint) if hint else Reply(Kind.ELSE, said)


def _hint(body: bytes) -> str:
    """Return where fuseboard says to send instead; empty if the answer is not one of its own."""
    try:
        fields = json.loads(body)
        return str(fields["error"]) if fields["kind"] == "NotHere" else ""
    except (ValueError, KeyError, TypeError):
        return ""
