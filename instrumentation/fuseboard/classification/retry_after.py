"""Read how long a server asks us to wait: ``Retry-After`` in all its forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from fuseboard.classification.inspecting import probe

MAX_RETRY_AFTER = 86_400.0
"""Seconds; a longer wish is cut to this. Whether to wait at all is up to the retry's budget."""

_NUMBER = re.compile(r"[0-9]{1,32}(\.[0-9]{1,32})?")
_LONGEST_HEADER = 64


def retry_after_of(headers: object, now: float) -> float | None:
    """Return the seconds that response headers ask to wait.

    Args:
        headers: The headers of any client: a mapping, or anything with ``get``.
        now: Wall time, seconds since the epoch, for HTTP dates.

    Returns:
        0 to ``MAX_RETRY_AFTER``, or None if there is no header or it makes no sense:
        negative, NaN, infinite, repeated or garbage. ``retry-after-ms`` is more precise and
        wins.
    """
    milliseconds = _number(_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, MAX_RETRY_AFTER)
    text = _header(headers, "retry-after")
    seconds = _number(text)
    if seconds is None:
        seconds = _seconds_until(text, now)
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER)


def _header(headers: object, name: str) -> str | None:
    if headers is None:
        return None
    get = probe(headers, "get")
    value: object = None
    if callable(get):
        try:
            # Clients' headers ignore case; a plain dict may hold either spelling.
            value = get(name) or get(name.title())
        except Exception:
            return None
    if value is None and type(headers) is dict:
        value = _search(headers, name)
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value.strip() if isinstance(value, str) and len(value) <= _LONGEST_HEADER else None


def _search(headers: Mapping[object, object], name: str) -> object:
    return next(
        (value for key, value in headers.items() if isinstance(key, str) and key.lower() == name),
        None,
    )


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text) else None


def _seconds_until(text: str | None, now: float) -> float | None:
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except Exception:
        return None
