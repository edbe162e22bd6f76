"""The address under which people open the dashboard, where that is a reverse proxy's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from fuseboard_server.login import Login

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


@dataclass(frozen=True, slots=True)
class Front:
    """How people reach a dashboard.

    Attributes:
        own: Address that it listens on.
        public: The address as people open it; None: its own.
        login: How they log in; None: nobody has to.
    """

    own: str
    public: PublicAddress | None = None
    login: Login | None = None

    @property
    def address(self) -> str:
        """Return where people open it, without a slash at the end."""
        return self.public.url if self.public else self.own

    @property
    def path(self) -> str:
        """Return the prefix of its paths; empty without one."""
        return self.public.path if self.public else ""

    @property
    def is_ours_to_end(self) -> bool:
        """Tell whether people log out here; of a proxy's login only the proxy can let them out."""
        return self.login is not None and self.login.can_log_out

    @property
    def lines(self) -> list[str]:
        """Return what a command says of it when it is ready: for people, and the proxy in front."""
        is_proxied = f" (a proxy's; its own is {self.own})" if self.public else ""
        found = [f"  Dashboard  {self.address}{is_proxied}"]
        if self.login is not None:
            found.append(f"  Login      {self.login.words}")
        return found


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
