"""Bearer tokens: who may send telemetry, and who may read."""

from __future__ import annotations

import hmac


class Token:
    """The one token that opens a door; without one it is open to everybody.

    Args:
        value: The token, visible ASCII without spaces; None: no token is needed.

    Raises:
        ValueError: If it can't be sent in a header; the message does not repeat it.
    """

    def __init__(self, value: str | None) -> None:
        if value is not None and (not value or not value.isascii() or not _is_visible(value)):
            raise ValueError("a token is made of visible ASCII characters, without spaces")
        self._expected = None if value is None else value.encode()

    def __bool__(self) -> bool:
        """Tell whether a token is needed."""
        return self._expected is not None

    def admits(self, authorization: str | bytes | None) -> bool:
        """Tell whether an ``Authorization`` header's value opens the door.

        Takes the same time for every wrong token.
        """
        if self._expected is None:
            return True
        given = authorization or b""
        raw = given.encode("utf-8", "replace") if isinstance(given, str) else given
        scheme, _, token = raw.partition(b" ")
        is_bearer = scheme.lower() == b"bearer"
        return hmac.compare_digest(token.strip(b" "), self._expected) and is_bearer


OPEN = Token(None)
"""The door without a token."""


def _is_visible(value: str) -> bool:
    return all(" " < character < "\x7f" for character in value)
