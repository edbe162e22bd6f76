"""Sockets, bound before anything else starts, so that a taken port is said at once.

They listen only once there is something to answer: a client that is refused comes back at once,
one that is accepted and kept waiting may give up with its data.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Iterable
from typing import NamedTuple

from fuseboard_server.exits import CommandError, Exit


def bind(host: str, port: int, flag: str) -> socket.socket:
    """Bind a TCP socket; it does not listen yet.

    Args:
        host: Address or name to listen on.
        port: Port, 0 for any free one.
        flag: The command-line flag that changes the port, for the error message.

    Raises:
        CommandError: If the port or the address can't be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise CommandError(
            f"--host {host!r} is not an address of this machine ({error.strerror}). "
            "Use 127.0.0.1, localhost or ::1.",
            Exit.USAGE,
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise CommandError(explain(error, host, port, flag), Exit.USAGE) from error
    return listener


class Wanted(NamedTuple):
    """A port to bind; the arguments of :func:`bind`."""

    host: str
    port: int
    flag: str


def bind_all(wanted: Iterable[Wanted]) -> list[socket.socket]:
    """Bind several TCP sockets, or none.

    Args:
        wanted: Where.

    Raises:
        CommandError: If one can't be had; says so of each that can't.
    """
    listeners: list[socket.socket] = []
    refusals: list[str] = []
    for one in wanted:
        try:
            listeners.append(bind(*one))
        except CommandError as error:
            refusals.append(error.message)
    if refusals:
        for listener in listeners:
            listener.close()
        # A wrong host is the same message for every port.
        raise CommandError("\n".join(dict.fromkeys(refusals)), Exit.USAGE)
    return listeners


def explain(error: OSError, host: str, port: int, flag: str) -> str:
    """Say why a port can't be had, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another process. "
            f"Choose another with {flag} PORT, or stop that process."
        )
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights. Choose one above 1023 with {flag} PORT."
    return f"can't listen on {host} port {port}: {error.strerror}. Change --host or {flag}."


def port_of(listener: socket.socket) -> int:
    """Return the port that a socket is bound to."""
    return int(listener.getsockname()[1])


def address_of(listener: socket.socket) -> str:
    """Return the address that a socket is bound to, as in ``127.0.0.1:4317`` or ``[::1]:4317``."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url(host: str, port: int) -> str:
    """Return the address to open, with a wildcard host spelled as loopback."""
    if host in {"", "0.0.0.0"}:  # noqa: S104 (compared, not bound)
        host = "127.0.0.1"
    elif host == "::":
        host = "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Tell whether listening on ``host`` is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_free(host: str, port: int) -> bool:
    """Tell whether a port could be bound now."""
    try:
        bind(host, port, "").close()
    except CommandError:
        return False
    return True
