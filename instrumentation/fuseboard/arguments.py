"""The hash of a call's arguments: equal calls get equal hashes, and no argument is stored.

Formula: ``v1:`` + the first 8 bytes, in hex, of keyed BLAKE2b over canonical JSON: ASCII only,
no spaces, keys sorted, numbers as Python writes them. What JSON cannot say becomes a marker, an
object with the key ``$type``. Objects that are not built in are never touched: looking at a
generator, a file or a lazily loaded row would change it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

from fuseboard.conventions import ARGS_HASH_VERSION, DEFAULT_HASH_KEY, ENV_HASH_KEY

MAX_TEXT: Final = 4096
MAX_ITEMS: Final = 1000
MAX_NODES: Final = 5000
MAX_DEPTH: Final = 12
_MAX_DIGESTED: Final = 65_536
_MAX_INT_BITS: Final = 4096
_DIGEST_BYTES: Final = 8
_INT64: Final = 1 << 63
_TYPE: Final = "$type"

_JSON: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
)


def _make_encode() -> Callable[[object], str]:
    """Return what ``_JSON.encode`` is, without its making an encoder for each text (1.5 µs)."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _JSON.encode
    chunks = make(
        None,
        _JSON.default,
        json.encoder.encode_basestring_ascii,
        None,
        ":",
        ",",
        True,
        False,
        False,
    )
    return lambda value: "".join(chunks(value, 0))


_ENCODE: Final = _make_encode()
# Immutable values of the standard library whose text says all; exact types only.
_TEXT_TYPES: Final[dict[type, Callable[[object], str]]] = {
    dt.date: str,
    dt.timedelta: str,
    decimal.Decimal: str,
    uuid.UUID: str,
}


def hash_arguments(bound: Mapping[str, object], ignore: Collection[str] = ()) -> str:
    """Return the hash of a call's arguments; never raises.

    Args:
        bound: The arguments by name, defaults not applied.
        ignore: Names of arguments that change from call to call and are left out.

    Returns:
        ``v1:`` and 16 hex digits.

    Since 0.1.0.
    """
    try:
        if ignore:
            bound = {key: value for key, value in bound.items() if key not in ignore}
        digest = _keyed().copy()
        digest.update(_canonical(bound).encode("ascii"))
        return f"{ARGS_HASH_VERSION}:{digest.hexdigest()}"
    except Exception:
        return f"{ARGS_HASH_VERSION}:{'0' * 2 * _DIGEST_BYTES}"


def _keyed() -> blake2b:
    return _keyed_with(os.environ.get(ENV_HASH_KEY) or DEFAULT_HASH_KEY)


@lru_cache(maxsize=4)
def _keyed_with(key: str) -> blake2b:
    secret = key.encode("utf-8", "surrogateescape")
    if len(secret) > blake2b.MAX_KEY_SIZE:
        secret = blake2b(secret).digest()
    return blake2b(key=secret, digest_size=_DIGEST_BYTES)


def _canonical(bound: Mapping[str, Any]) -> str:
    for value in bound.values():
        kind = type(value)
        if kind is str:
            if len(value) <= MAX_TEXT:
                continue
        elif kind is int:
            if -_INT64 <= value < _INT64:
                continue
        elif kind is bool or value is None or (kind is float and math.isfinite(value)):
            continue
        return _ENCODE(plain(dict(bound)))
    return _ENCODE(bound if type(bound) is dict else dict(bound))


def plain(value: object, text: Callable[[str], object] | None = None) -> object:
    """Return a bounded copy of a value, made of JSON's types and markers only.

    Args:
        value: Any value; nothing but built-in types is looked into.
        text: Applied to each string value, for example to redact it.

    Returns:
        Dicts with string keys, lists, strings, 64-bit integers, finite floats, booleans, None.
    """
    return _Plain(text).convert(value, 0)


class _Plain:
    """One conversion: counts what it visits and knows what it is inside of."""

    def __init__(self, text: Callable[[str], object] | None) -> None:
        self._text = text
        self._nodes = 0
        self._inside: set[int] = set()

    def convert(self, value: Any, depth: int) -> object:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            return {_TYPE: "more"}
        kind = type(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, str):
            return self._string(str.__str__(value))
        if issubclass(kind, int):
            return _integer(int.__index__(value))
        if issubclass(kind, float):
            return _float(float.__float__(value))
        if issubclass(kind, dict | list | tuple | set | frozenset):
            return self._container(value, kind, depth)
        return _marker(value, kind)

    def _string(self, value: str) -> object:
        if self._text is not None:
            return self._text(value)
        if len(value) <= MAX_TEXT:
            return value
        start = value[:_MAX_DIGESTED].encode("utf-8", "surrogatepass")
        return {_TYPE: "str", "length": len(value), "digest": _digest(start)}

    def _container(self, value: Any, kind: type, depth: int) -> object:
        if id(value) in self._inside:
            return {_TYPE: "cycle"}
        if depth >= MAX_DEPTH:
            return {_TYPE: "deep"}
        self._inside.add(id(value))
        try:
            if issubclass(kind, dict):
                return self._dict(value, depth)
            if issubclass(kind, list):
                return self._items(list.__iter__(value), list.__len__(value), depth)
            if issubclass(kind, tuple):
                return self._items(tuple.__iter__(value), tuple.__len__(value), depth)
            return self._set(value, kind, depth)
        finally:
            self._inside.discard(id(value))

    def _items(self, items: Iterator[object], length: int, depth: int) -> list[object]:
        converted = [self.convert(item, depth + 1) for item in islice(items, MAX_ITEMS)]
        if length > MAX_ITEMS:
            converted.append({_TYPE: "more", "length": length})
        return converted

    def _set(self, value: Any, kind: type, depth: int) -> object:
        base = set if issubclass(kind, set) else frozenset
        length = base.__len__(value)
        if length > MAX_ITEMS:
            # A set has no order, so there is no telling which items to keep.
            return {_TYPE: "set", "length": length}
        items = [self.convert(item, depth + 1) for item in base.__iter__(value)]
        return {_TYPE: "set", "items": sorted(items, key=_ENCODE)}

    def _dict(self, value: dict[object, object], depth: int) -> object:
        length = dict.__len__(value)
        items = list(islice(dict.items(value), MAX_ITEMS))
        if all(type(key) is str for key, _ in items):
            named = {str(key): self.convert(item, depth + 1) for key, item in items}
            if length > MAX_ITEMS:
                named[_TYPE] = {_TYPE: "more", "length": length}
            return named
        pairs = [
            [self.convert(key, depth + 1), self.convert(item, depth + 1)] for key, item in items
        ]
        return {_TYPE: "dict", "length": length, "items": sorted(pairs, key=_ENCODE)}


def _integer(value: int) -> object:
    if -_INT64 <= value < _INT64:
        return value
    bits = value.bit_length()
    return (
        {_TYPE: "int", "hex": hex(value)} if bits <= _MAX_INT_BITS else {_TYPE: "int", "bits": bits}
    )


def _float(value: float) -> object:
    return value if math.isfinite(value) else {_TYPE: "float", "value": repr(value)}


def _marker(value: Any, kind: type) -> object:
    marker: dict[str, object] = {_TYPE: f"{kind.__module__}.{kind.__qualname__}"}
    if kind is bytes or kind is bytearray:
        marker["length"] = len(value)
        marker["digest"] = _digest(bytes(value[:_MAX_DIGESTED]))
    elif kind is dt.datetime and _has_plain_zone(value):
        marker["value"] = str(value)
    elif kind in _TEXT_TYPES:
        marker["value"] = _TEXT_TYPES[kind](value)
    return marker


def _has_plain_zone(moment: dt.datetime) -> bool:
    """Tell whether reading a datetime runs no code but the standard library's."""
    zone = moment.tzinfo
    return zone is None or type(zone) is dt.timezone


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
