"""Reading a request's body within limits: size on the wire, and size unpacked."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from enum import Enum

from starlette.requests import ClientDisconnect, Request

from fuseboard_collector.receiver.errors import (
    MalformedError,
    TooLargeError,
    UnsupportedError,
)

MAX_BODY = 16 * 1024 * 1024
MAX_UNPACKED = 64 * 1024 * 1024
_GZIP = 31  # zlib's window bits for a gzip wrapper
MAX_MEMBERS = 10_000
_CHUNK = 1024 * 1024
_SLICE = 16 * 1024
_PADDING = re.compile(rb"\0*")


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


def is_compressed(request: Request) -> bool:
    """Return whether the body is gzip.

    Raises:
        UnsupportedError: If it is encoded in any other way.
    """
    given = request.headers.get("content-encoding", "").strip().lower()
    if given in ("gzip", "x-gzip"):
        return True
    if given in ("", "identity"):
        return False
    raise UnsupportedError(f"content encoding {given[:100]!r} is not supported: send gzip or none")


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
        MalformedError: If the client hangs up before its end.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise TooLargeError(_over(limit))
    chunks = []
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise TooLargeError(_over(limit))
            count(len(chunk))
            chunks.append(chunk)
    except ClientDisconnect:
        raise MalformedError("the client hung up in the middle of the body") from None
    return b"".join(chunks)


def unpack(body: bytes, limit: int = MAX_UNPACKED) -> bytes:
    """Decompress a gzip body of one or several members, at most ``limit`` bytes of it.

    Raises:
        MalformedError: If it is damaged or ends too early.
        TooLargeError: If it unpacks to more, or has thousands of members.
    """
    pieces: list[bytes] = []
    size = position = members = 0
    while position < len(body):
        members += 1
        if members > MAX_MEMBERS:
            raise TooLargeError(f"the body has more than {MAX_MEMBERS} gzip members")
        unpacker = zlib.decompressobj(_GZIP)
        while not unpacker.eof:
            # Fed by the slice: zlib copies what it leaves over, again for each member.
            given = unpacker.unconsumed_tail or body[position : position + _SLICE]
            if not unpacker.unconsumed_tail:
                position += len(given)
            piece = _step(unpacker, given, min(_CHUNK, limit - size + 1))
            size += len(piece)
            if size > limit:
                raise TooLargeError(f"the body unpacks to more than {limit >> 20} MiB")
            pieces.append(piece)
            if not given and not piece and not unpacker.eof:
                raise MalformedError("the gzip body ends too early")
        position -= len(unpacker.unused_data)
        position = _padding_end(body, position)
    return b"".join(pieces)


def _padding_end(body: bytes, position: int) -> int:
    found = _PADDING.match(body, position)
    return found.end() if found else position


def _step(unpacker: zlib._Decompress, data: bytes, most: int) -> bytes:
    try:
        return unpacker.decompress(data, most)
    except zlib.error as error:
        raise MalformedError(f"the gzip body is damaged: {error}") from None


def _over(limit: int) -> str:
    return f"the body is larger than {limit >> 20} MiB: send smaller batches"
