"""A foreign call's arguments → the hash that the shim would have given them."""

from __future__ import annotations

import json

from fuseboard.arguments import hash_arguments
from fuseboard_collector.normalise.dialects.dialect import Dialect, arguments_of
from fuseboard_collector.normalise.incoming import IncomingSpan

_MAX_DOCUMENT = 65_536


def hash_of(span: IncomingSpan, dialect: Dialect) -> str | None:
    """Return the hash of a call's arguments; None if they are not told by name.

    Args:
        span: A span that tells of a call.
        dialect: Whose words it uses.
    """
    found = arguments_of(span, dialect)
    if isinstance(found, str) and len(found) <= _MAX_DOCUMENT:
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return None
    return hash_arguments(found) if isinstance(found, dict) else None
