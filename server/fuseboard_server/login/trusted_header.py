"""Log in by a header that an authenticating reverse proxy sets on every request.

Whoever reaches our port past the proxy could set it as well. It counts only on connections that
come from the proxy's own address: the peer's, never one that a header tells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import ClassVar, Final, TypeAlias

from fuseboard_server.dispatch import Scope
from fuseboard_server.login.verdict import (
    MAX_NAME,
    UNAUTHORISED,
    Refusal,
    Verdict,
    Viewer,
    values_of,
)
from fuseboard_server.running import PEER

Network: TypeAlias = IPv4Network | IPv6Network

EXAMPLE: Final = "X-Forwarded-User"
LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*")
NOT_FOR_THIS: Final = frozenset({
    "accept", "authorization", "cache-control", "cf-connecting-ip", "cf-ray", "connection",
    "content-encoding", "content-length", "content-type", "cookie", "date", "dnt", "expect",
    "forwarded", "host", "keep-alive", "last-event-id", "origin", "pragma", "priority", "range",
    "referer", "te", "traceparent", "tracestate", "trailer", "transfer-encoding",
    "true-client-ip", "upgrade", "upgrade-insecure-requests", "user-agent", "via", "warning",
    "x-client-ip", "x-csrf-token", "x-forwarded", "x-forwarded-for", "x-forwarded-host",
    "x-forwarded-path", "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-proto",
    "x-forwarded-scheme", "x-forwarded-server", "x-forwarded-ssl", "x-forwarded-uri",
    "x-original-uri", "x-original-url", "x-real-ip", "x-request-id", "x-requested-with",
    "x-scheme", "x-xsrftoken",
})  # fmt: skip
"""Headers that browsers or proxies set for purposes of their own."""
NOT_SO: Final = (
    "accept-", "access-control-", "if-", "proxy-", "sec-", "x-b3-", "x-envoy-", "x-fuseboard-",
)  # fmt: skip
"""How more of them begin."""


@dataclass(frozen=True, slots=True)
class TrustedHeader:
    """Which header is believed, and from whom.

    Attributes:
        name: The header, as it was written.
        proxies: The networks whose connections are believed.
    """

    name: str
    proxies: tuple[Network, ...] = LOOPBACK
    can_log_out: ClassVar[bool] = False

    @property
    def words(self) -> str:
        """Return what is on, in words."""
        return f"header {self.name} of a proxy at {self._places()}"

    def judge(self, scope: Scope) -> Verdict:
        """Tell who asks, as the proxy says."""
        peer = scope.get(PEER)
        if not peer or not self._is_proxy(str(peer[0])):
            return _refuse(
                "This request did not come through the proxy that logs people in. Open the "
                "dashboard by the proxy's address.",
                "connections are believed from the addresses that the server's log names at its "
                "start; --trusted-proxy changes them.",
            )
        values = values_of(scope, self.name.lower().encode())
        if len(values) != 1:
            count = "no" if not values else "more than one"
            return _refuse(
                "The proxy in front did not say who you are.",
                f"there was {count} header {self.name}; the proxy has to log people in and to set "
                "it, once, on every request and on websockets.",
            )
        return _named(values[0]) or _refuse(
            "The proxy in front did not say who you are in a way that can be shown.",
            f"the header {self.name} has to be 1 to {MAX_NAME} printable characters without a "
            "comma.",
        )

    def _is_proxy(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.proxies)

    def _places(self) -> str:
        return "this machine" if self.proxies == LOOPBACK else ", ".join(map(str, self.proxies))


def _refuse(text: str, hint: str) -> Refusal:
    return Refusal(UNAUTHORISED, "Not logged in", text, hint)


def _named(value: str) -> Viewer | None:
    """Return who a header's value names; a comma joins two values, one of which is a stranger's."""
    raw = value.strip().encode("latin-1")
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        name = raw.decode("latin-1")
    is_good = 0 < len(name) <= MAX_NAME and name.isprintable() and "," not in name
    return Viewer(name) if is_good else None


def parse_name(text: str) -> str:
    """Check a header's name.

    Raises:
        ValueError: If it can't be trusted or is another purpose's.
    """
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no header such as {EXAMPLE}: letters, digits and single - "
            "(proxies disagree about _)"
        )
    if text.lower() in NOT_FOR_THIS or text.lower().startswith(NOT_SO):
        raise ValueError(f"{text!r} tells something else than who asks; {EXAMPLE} would do")
    return text


def parse_network(text: str) -> Network:
    """Check the address or network of a proxy.

    Raises:
        ValueError: If it is none, or everybody's.
    """
    try:
        network = ip_network(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is no address such as 10.0.0.7 or 10.0.0.0/24: {error}") from (
            None
        )
    if network.prefixlen == 0:
        raise ValueError(f"{text!r} is everybody: anybody could say to be anybody")
    return network
