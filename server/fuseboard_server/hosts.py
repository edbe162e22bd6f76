"""Which ``Host`` headers are answered: a defence against DNS rebinding.

A page from elsewhere can make a browser ask for its own name after pointing that name at
127.0.0.1. The request then carries the foreign name, which no honest request does. Addresses
can't be rebound, so where the server listens beyond loopback every literal address is fine.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from fuseboard_server.sockets import is_loopback

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class HostAllowList:
    """The names under which a server answers.

    Args:
        host: The address or name that the server listens on.
        extra: Further names, for example that of a reverse proxy.
    """

    def __init__(self, host: str, extra: Iterable[str] = ()) -> None:
        self._any_address = not is_loopback(host)
        own = {socket.gethostname().lower()} if self._any_address else set()
        self._names = LOOPBACK_NAMES | own | {name.lower() for name in (host, *extra)}

    def allows(self, header: str) -> bool:
        """Tell whether a ``Host`` header's value (with or without a port) is allowed."""
        name = host_name(header)
        if name is None:
            return False
        if name in self._names:
            return True
        return self._any_address and _is_address(name)


def host_name(header: str) -> str | None:
    """Return the lower-case name or address of a ``Host`` header without port and brackets."""
    text = header.strip().lower()
    if text.startswith("["):
        address, bracket, rest = text[1:].partition("]")
        return address if bracket and (not rest or _is_port(rest)) else None
    name, colon, port = text.partition(":")
    if colon and not port.isdigit():
        return None
    return name.rstrip(".") or None


def _is_port(rest: str) -> bool:
    return rest.startswith(":") and rest[1:].isdigit()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
