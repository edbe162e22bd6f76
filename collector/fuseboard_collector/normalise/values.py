"""Attribute values → columns: typed, bounded, and free of what a store can't hold."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from fuseboard.conventions import RECEIVED_MARKS
from fuseboard.telemetry import redaction
from fuseboard_collector.normalise.incoming import Attributes, Value

MAX_NAME = 256
MAX_TEXT = 4096
MAX_ITEMS = 128
MAX_DEPTH = 8
MAX_JSON = 65_536

_MAX_INT64 = 2**63 - 1
_MAX_INT32 = 2**31 - 1


def text(value: Value, limit: int = MAX_NAME) -> str | None:
    """Return a text column; None for what is absent or empty."""
    if type(value) is str and 0 < len(value) <= limit and "\0" not in value:
        return value
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        value = value if isinstance(value, int | float) else _json(value)
        value = str(value)
    return clean(value)[:limit]


def clean(value: str) -> str:
    """Replace U+0000, which neither JSON functions nor exports carry through."""
    return value.replace("\0", "�") if "\0" in value else value


def name_of(value: Value) -> str | None:
    """Return a name that a sender chose as a column; None for what is absent or empty."""
    if isinstance(value, str) and "://" in value:
        # Addresses carry user names, passwords and keys.
        return redaction.name(clean(value[:MAX_TEXT]))
    return text(value)


def number(value: Value) -> float | None:
    """Return a finite number; None for anything else."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def seconds(value: Value) -> float | None:
    """Return a duration in seconds, never negative; None for what is no number."""
    found = number(value)
    return found if found is None or found >= 0.0 else 0.0


def count(value: Value, most: int = _MAX_INT32) -> int | None:
    """Return a whole number between 0 and ``most``; None for anything else."""
    if type(value) is int and 0 <= value <= most:
        return value
    found = number(value)
    return int(min(max(found, 0), most)) if found is not None else None


def flag(value: Value) -> bool | None:
    """Return a truth value; None for anything but a boolean."""
    return value if isinstance(value, bool) else None


def document_of(
    attributes: Attributes, names: Sequence[str], marks: Collection[str] = ()
) -> str | None:
    """Return some attributes as JSON text.

    Args:
        attributes: The record's attributes.
        names: Those to keep.
        marks: What was changed in the record already.

    Returns:
        At most ``MAX_JSON`` characters; what was cut is named under ``RECEIVED_MARKS``. None if
        nothing is left.
    """
    if not names and not marks:
        return None
    noted = list(marks)
    kept: dict[str, object] = {}
    for name in names:
        if len(kept) == MAX_ITEMS:
            noted.append("attributes dropped")
            break
        value: object = attributes[name]
        if type(value) is not str or len(value) > MAX_TEXT or "://" in value or "\0" in value:
            value = _bounded(attributes[name], name, noted)
        is_storable = len(name) <= MAX_NAME and "\0" not in name
        kept[name if is_storable else clean(name)[:MAX_NAME]] = value
    if noted:
        kept[RECEIVED_MARKS] = noted[:MAX_ITEMS]
    document = _json(kept)
    if len(document) > MAX_JSON:
        document = _json({RECEIVED_MARKS: [*noted[:MAX_ITEMS], "attributes dropped"]})
    return document


def json_column(value: Value) -> str | None:
    """Return a JSON column from an attribute that carries JSON text; None if it doesn't."""
    if not isinstance(value, str) or len(value) > 16 * MAX_JSON:
        return None
    try:
        return json.dumps(_plain(json.loads(value)), separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return None


def _plain(value: object) -> object:
    """Make parsed JSON storable: no U+0000, no NaN."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item) for key, item in value.items()}
    return value


def _bounded(value: Value, name: str, marks: list[str], depth: int = 0) -> object:
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            marks.append(f"cut: {clean(name)[:MAX_NAME]}")
        value = clean(value[:MAX_TEXT])
        # Addresses carry user names, passwords and keys.
        return redaction.redact(value, MAX_TEXT) if "://" in value else value
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -_MAX_INT64 - 1 <= value <= _MAX_INT64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return _bounded(base64.b64encode(value).decode(), name, marks)
    return _bounded_nest(value, name, marks, depth)


def _bounded_nest(
    value: list[Value] | dict[str, Value], name: str, marks: list[str], depth: int
) -> object:
    if len(value) > MAX_ITEMS or depth == MAX_DEPTH:
        marks.append(f"cut: {clean(name)[:MAX_NAME]}")
    if depth == MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [_bounded(item, name, marks, depth + 1) for item in value[:MAX_ITEMS]]
    return {
        clean(key)[:MAX_NAME]: _bounded(item, name, marks, depth + 1)
        for key, item in list(value.items())[:MAX_ITEMS]
    }


def _make_encode() -> Callable[[object], str]:
    """Return what ``JSONEncoder.encode`` is, without its making an encoder for each text."""
    encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    quote = json.encoder.encode_basestring
    chunks = make(None, str, quote, None, ":", ",", False, False, True)
    return lambda value: "".join(chunks(value, 0))


_json = _make_encode()
