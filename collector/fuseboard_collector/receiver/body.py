"""Reading a request's body within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

from starlette.requests import ClientDisconnect, Request

from fuseboard_collector.receiver.errors import (
    MalformedError,
    TooLargeError,
    TooSlowError,
    UnsupportedError,
)
from fuseboard_collector.receiver.unpacking import Packing

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a body on the wire. A batch of 512 spans with every attribute at its limit has 4 MiB."""
BODY_SECONDS = 60.0
"""How long a body may take to arrive: who sends a byte now and then must not hold memory."""


class Encoding(Enum):
    """The two encodings of OTLP/HTTP, by content type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


def encoding_of(request: Request) -> Encoding:
    """Return a request's encoding; parameters of the content type don't matter.

    Raises:
        UnsupportedError: If the content type is neither of OTLP's.
    """
    given = request.headers.get("content-type", "")
    try:
        return Encoding(given.split(";", 1)[0].strip().lower())
    except ValueError:
        raise UnsupportedError(
            f"content type {given[:100]!r} is not supported: send {Encoding.PROTOBUF.value} or "
            f"{Encoding.JSON.value}"
        ) from None


_PACKINGS = {
    "": Packing.NONE,
    "identity": Packing.NONE,
    "gzip": Packing.GZIP,
    "x-gzip": Packing.GZIP,
    "zstd": Packing.ZSTD,
}


def packing_of(request: Request) -> Packing:
    """Return how a request's body is compressed.

    Raises:
        UnsupportedError: If it is encoded in any other way.
    """
    given = request.headers.get("content-encoding", "").strip().lower()
    try:
        return _PACKINGS[given]
    except KeyError:
        raise UnsupportedError(
            f"content encoding {given[:100]!r} is not supported: send gzip, zstd or none"
        ) from None


def _nobody_counts(_size: int) -> None:
    """Take note of nothing."""


async def read(
    request: Request,
    limit: int = MAX_BODY,
    count: Callable[[int], None] = _nobody_counts,
) -> bytes:
    """Read a body, but never more than ``limit`` bytes of it.

    Args:
        request: Whose body.
        limit: Bytes.
        count: Told the size of each piece before it is kept; may raise to stop.

    Raises:
        TooLargeError: If it is, or says that it is, larger.
        TooSlowError: If it takes longer than ``BODY_SECONDS``.
        MalformedError: If the client hangs up before its end.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise TooLargeError(_over(limit))
    chunks = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise TooLargeError(_over(limit))
                count(len(chunk))
                chunks.append(chunk)
    except ClientDisconnect:
        raise MalformedError("the client hung up in the middle of the body") from None
    except TimeoutError:
        raise too_slow() from None
    return b"".join(chunks)


def too_slow() -> TooSlowError:
    """Return the refusal of a body that does not arrive."""
    return TooSlowError(f"the body took longer than {BODY_SECONDS:g} s")


def _over(limit: int) -> str:
    if limit < 1 << 20:
        return f"the body is larger than {limit} bytes"
    return f"the body is larger than {limit >> 20} MiB: send smaller batches"
