"""The address under which people open the dashboard, where that is a reverse proxy's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

EXAMPLE: Final = "https://ops.example/fuseboard"
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*")


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """An address taken apart.

    Attributes:
        origin: Scheme, host and port, as browsers send it in ``Origin``.
        host: Name or address alone, in lower case.
        path: The prefix of every path below it; empty, or with a slash in front and none behind.
    """

    origin: str
    host: str
    path: str

    @property
    def url(self) -> str:
        """Return the whole address."""
        return f"{self.origin}{self.path}"


def parse(text: str) -> PublicAddress:
    """Take an address apart.

    Raises:
        ValueError: If it is none that browsers could open, or has a query or a user.
    """
    parts = urlsplit(text.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{text!r} is no address such as {EXAMPLE}")
    port = parts.port  # raises ValueError itself
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"{text!r} must have neither a user nor a query; write it like {EXAMPLE}")
    segments = [segment for segment in parts.path.split("/") if segment]
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise ValueError(
                f"{text!r}: {segment!r} can't be part of the path; letters, digits and . _ ~ - can"
            )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    # Browsers leave the usual port out of Origin.
    is_usual = port is None or port == {"http": 80, "https": 443}[parts.scheme]
    origin = f"{parts.scheme}://{host}" + ("" if is_usual else f":{port}")
    return PublicAddress(origin, parts.hostname, "".join(f"/{segment}" for segment in segments))


def names(public: PublicAddress | None, others: Iterable[str]) -> tuple[str, ...]:
    """Return the names that a server answers to besides its own."""
    return (*others, *((public.host,) if public else ()))


def described(public: PublicAddress | None, own: str) -> str:
    """Return where the dashboard is, in words: for people, and for the proxy in front."""
    return f"{public.url} (a proxy's; its own is {own})" if public else own
