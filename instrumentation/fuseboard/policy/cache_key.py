"""What makes two calls equal: a digest that only equal arguments share.

The hash of the arguments that goes on record (:mod:`fuseboard.arguments`) hashes an object by
its type and a long text by its start, which is enough to count by and too little to answer by: two
calls must never get the same answer because they look alike. This digest is of the whole
value, twice as long, and does not exist where a value says too little about itself.
"""

from __future__ import annotations

import datetime as dt
import decimal
import os
import uuid
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from fuseboard.conventions import DEFAULT_HASH_KEY, ENV_HASH_KEY

MAX_DEPTH: Final = 32
MAX_NODES: Final = 50_000
_DIGEST_BYTES: Final = 16
_FLAT: Final = frozenset({str, int, float, bool, type(None)})


class IndistinctError(Exception):
    """A value can't be told from others by looking at it; the text names its type."""


def digest_of(value: object, place: tuple[str | None, ...] = ()) -> str:
    """Return a digest that only equal values in the same place share.

    Args:
        value: Values of built-in types, dates, decimals, UUIDs, enum members and containers of
            them, of these very types: nothing else is looked into. The order of a dict's keys
            does not matter.
        place: Texts that tell where the value belongs.

    Returns:
        32 hex digits: BLAKE2b, keyed with ``FUSEBOARD_HASH_KEY``.

    Raises:
        IndistinctError: For anything else, such as a generator, a file or an object.
    """
    digest = _keyed(os.environ.get(ENV_HASH_KEY) or DEFAULT_HASH_KEY).copy()
    digest.update(_as_text(place))
    digest.update(_as_flat(value) or _Encoding().of(value, 0))
    return digest.hexdigest()


@lru_cache(maxsize=4)
def _keyed(key: str) -> blake2b:
    secret = key.encode("utf-8", "surrogateescape")
    if len(secret) > blake2b.MAX_KEY_SIZE:
        secret = blake2b(secret).digest()
    return blake2b(key=secret, digest_size=_DIGEST_BYTES)


def _as_flat(value: object) -> bytes | None:
    """Encode a dict of texts and numbers, which most calls have, in a third of the time.

    Python writes no two different ones of them alike.
    """
    if type(value) is not dict or not _FLAT.issuperset(map(type, value.values())):
        return None
    if not all(type(key) is str for key in value):
        return None
    try:
        # No framed encoding begins so.
        return b"=" + repr(sorted(value.items())).encode("utf-8", "surrogatepass")
    except ValueError:
        return None  # an int of thousands of digits


def _framed(tag: bytes, content: bytes) -> bytes:
    # The length says where the content ends, so that no two values run together alike.
    return b"%b%d:%b" % (tag, len(content), content)


def _as_text(value: object) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


_PLAIN: Final[dict[type, tuple[bytes, Callable[[Any], bytes]]]] = {
    type(None): (b"n", lambda _: b""),
    bool: (b"b", _as_text),
    int: (b"i", lambda value: hex(value).encode("ascii")),
    float: (b"f", lambda value: value.hex().encode("ascii")),
    complex: (b"c", _as_text),
    str: (b"s", _as_text),
    bytes: (b"y", bytes),
    dt.date: (b"D", _as_text),
    dt.timedelta: (b"P", _as_text),
    decimal.Decimal: (b"N", _as_text),
    uuid.UUID: (b"U", _as_text),
}


class _Encoding:
    """One encoding: counts what it visits."""

    def __init__(self) -> None:
        self._nodes = 0

    def of(self, value: Any, depth: int) -> bytes:
        self._nodes += 1
        kind = type(value)
        plain = _PLAIN.get(kind)
        if plain is not None:
            return _framed(plain[0], plain[1](value))
        if depth >= MAX_DEPTH or self._nodes > MAX_NODES:
            raise IndistinctError("a value too deep or too large")
        if kind is list or kind is tuple:
            tag = b"l" if kind is list else b"t"
            return _framed(tag, b"".join(self._each(value, depth)))
        if kind is dict:
            return _framed(b"d", b"".join(sorted(self._each(value.items(), depth))))
        if kind is set or kind is frozenset:
            return _framed(b"S", b"".join(sorted(self._each(value, depth))))
        return self._odd(value, kind, depth)

    def _each(self, items: Iterable[object], depth: int) -> list[bytes]:
        return [self.of(item, depth + 1) for item in items]

    def _odd(self, value: Any, kind: type, depth: int) -> bytes:
        name = f"{kind.__module__}.{kind.__qualname__}"
        # Asked of the type, since an object may pretend; zones other than UTC offsets run code.
        if issubclass(kind, Enum):
            member = self.of(value._value_, depth + 1)
            return _framed(b"E", _framed(b"s", name.encode()) + member)
        if kind is dt.datetime and type(value.tzinfo) in (type(None), dt.timezone):
            return _framed(b"M", _as_text(value))
        raise IndistinctError(name)
