"""Decompression within limits: never more than a bounded number of bytes from one body."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Mapping
from enum import Enum
from typing import Final

from fuseboard_collector.receiver.errors import MalformedError, TooLargeError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_MEMBERS = 10_000
"""Members of a gzip body, or frames of a zstd one; each costs a decompressor, however little is in
it."""
_WINDOW: Final[Mapping[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
"""8 MiB: the most that a zstd body of HTTP may make its receiver keep (RFC 9659)."""
_GZIP = 31  # zlib's window bits for a gzip wrapper
_CHUNK = 1024 * 1024
_SLICE = 16 * 1024
_PADDING = re.compile(rb"\0*")


class Packing(Enum):
    """How a body is compressed."""

    NONE = "identity"
    GZIP = "gzip"
    ZSTD = "zstd"


def unpack(body: bytes, limit: int, packing: Packing = Packing.GZIP) -> bytes:
    """Decompress a body, at most ``limit`` bytes of it.

    Args:
        body: As it came; gzip and zstd may have several members or frames.
        limit: Bytes.
        packing: How it is compressed.

    Raises:
        MalformedError: If it is damaged or ends too early.
        TooLargeError: If it unpacks to more, or has thousands of members.
    """
    if packing is Packing.NONE:
        return body
    return _gunzip(body, limit) if packing is Packing.GZIP else _unpack_zstd(body, limit)


def _gunzip(body: bytes, limit: int) -> bytes:
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
                raise TooLargeError(_over(limit))
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


def _unpack_zstd(body: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = position = frames = 0
    while position < len(body):
        frames += 1
        if frames > MAX_MEMBERS:
            raise TooLargeError(f"the body has more than {MAX_MEMBERS} zstd frames")
        unpacker = zstd.ZstdDecompressor(options=_WINDOW)
        while not unpacker.eof:
            given = body[position : position + _SLICE] if unpacker.needs_input else b""
            position += len(given)
            try:
                piece = unpacker.decompress(given, min(_CHUNK, limit - size + 1))
            except zstd.ZstdError as error:
                raise MalformedError(_fault(str(error))) from None
            size += len(piece)
            if size > limit:
                raise TooLargeError(_over(limit))
            pieces.append(piece)
            # A piece of just the size that was asked for hides that more input is needed.
            if position >= len(body) and not (given or piece or unpacker.eof):
                raise MalformedError("the zstd body ends too early")
        position -= len(unpacker.unused_data)
    return b"".join(pieces)


def _fault(words: str) -> str:
    if "too much memory" in words:
        return (
            "the zstd body wants a window of more than 8 MiB, the most that HTTP allows: pack it "
            "with a window log of at most 23 (no --long, no --ultra)"
        )
    return f"the zstd body is damaged: {words[:200]}"


def _over(limit: int) -> str:
    return f"the body unpacks to more than {limit >> 20} MiB: send smaller batches"
