"""Time-outs, lost and refused connections, name resolution, certificates."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from typing import Final

from fuseboard.classification.inspecting import first_argument, is_a, names_of, probe
from fuseboard.classification.verdicts import persistent_fault, transient_fault
from fuseboard.record import Verdict

TIMEOUT: Final = transient_fault("timeout_matcher", ambiguous=True)
CONNECT_TIMEOUT: Final = transient_fault("connect_timeout_matcher", ambiguous=False)
REFUSED: Final = transient_fault("connection_refused_matcher", ambiguous=False)
RESET: Final = transient_fault("connection_reset_matcher", ambiguous=True)
UNREACHABLE: Final = transient_fault("unreachable_matcher", ambiguous=False)
DNS_TRANSIENT: Final = transient_fault("dns_temporary_matcher", ambiguous=False)
DNS_UNKNOWN_HOST: Final = persistent_fault("dns_unknown_host_matcher")
CERTIFICATE: Final = persistent_fault("certificate_matcher")
TLS: Final = persistent_fault("tls_matcher")
POOL: Final = transient_fault("pool_exhausted_matcher", ambiguous=False)
LOST: Final = transient_fault("connection_matcher", ambiguous=True)
CONNECT_FAILED: Final = transient_fault("connect_matcher", ambiguous=False)

_NEW_CONNECTION: Final = "urllib3.exceptions.NewConnectionError"

# Clients' exceptions that say all there is to say, by qualified name.
_EXACT: Final[Mapping[str, Verdict]] = {
    "httpx.PoolTimeout": POOL,
    "httpcore.PoolTimeout": POOL,
    "httpx.ConnectTimeout": CONNECT_TIMEOUT,
    "httpcore.ConnectTimeout": CONNECT_TIMEOUT,
    "httpx.TimeoutException": TIMEOUT,
    "httpcore.TimeoutException": TIMEOUT,
    "httpx.ReadError": RESET,
    "httpx.WriteError": RESET,
    "httpx.RemoteProtocolError": RESET,
    "urllib3.exceptions.EmptyPoolError": POOL,
    "urllib3.exceptions.ConnectTimeoutError": CONNECT_TIMEOUT,
    "urllib3.exceptions.ReadTimeoutError": TIMEOUT,
    "requests.exceptions.ConnectTimeout": CONNECT_TIMEOUT,
    "requests.exceptions.ReadTimeout": TIMEOUT,
    "requests.exceptions.ChunkedEncodingError": RESET,
    "aiohttp.client_exceptions.ConnectionTimeoutError": CONNECT_TIMEOUT,
    "aiohttp.client_exceptions.ServerTimeoutError": TIMEOUT,
    "aiohttp.client_exceptions.ServerDisconnectedError": RESET,
    "aiohttp.client_exceptions.ClientPayloadError": RESET,
    "aiohttp.client_exceptions.ClientConnectorCertificateError": CERTIFICATE,
    "aiohttp.client_exceptions.ServerFingerprintMismatch": CERTIFICATE,
    "http.client.RemoteDisconnected": RESET,
    "http.client.IncompleteRead": RESET,
    "anyio.BrokenResourceError": RESET,
    "anyio.EndOfStream": RESET,
    "botocore.exceptions.ConnectTimeoutError": CONNECT_TIMEOUT,
    "botocore.exceptions.ReadTimeoutError": TIMEOUT,
    "concurrent.futures._base.TimeoutError": TIMEOUT,
}

# Names that only say "the connection"; used when nothing deeper says more.
_GENERAL: Final[Mapping[str, Verdict]] = {
    "httpx.ConnectError": CONNECT_FAILED,
    "httpcore.ConnectError": CONNECT_FAILED,
    "httpx.NetworkError": LOST,
    "httpcore.NetworkError": LOST,
    _NEW_CONNECTION: CONNECT_FAILED,
    "urllib3.exceptions.SSLError": TLS,
    "urllib3.exceptions.ProtocolError": RESET,
    "requests.exceptions.SSLError": TLS,
    "requests.exceptions.Timeout": TIMEOUT,
    "requests.exceptions.ConnectionError": LOST,
    "aiohttp.client_exceptions.ClientConnectorSSLError": TLS,
    "aiohttp.client_exceptions.ClientConnectorError": CONNECT_FAILED,
    "aiohttp.client_exceptions.ClientConnectionError": LOST,
    "botocore.exceptions.EndpointConnectionError": CONNECT_FAILED,
    "botocore.exceptions.ConnectionError": LOST,
    "urllib.error.URLError": LOST,
    "ConnectionError": LOST,
}

_DNS_TRANSIENT: Final = frozenset(
    code for code in (getattr(socket, "EAI_AGAIN", None), getattr(socket, "EAI_MEMORY", None))
    if code is not None
)  # fmt: skip

_ERRNOS: Final[Mapping[int, Verdict]] = {
    errno.ECONNREFUSED: REFUSED,
    errno.ETIMEDOUT: TIMEOUT,
    errno.ECONNRESET: RESET,
    errno.ECONNABORTED: RESET,
    errno.EPIPE: RESET,
    errno.EHOSTUNREACH: UNREACHABLE,
    errno.EHOSTDOWN: UNREACHABLE,
    errno.ENETUNREACH: UNREACHABLE,
    errno.ENETDOWN: UNREACHABLE,
    errno.EADDRNOTAVAIL: POOL,
    errno.EMFILE: POOL,
    errno.ENFILE: POOL,
}


def classify_network(error: BaseException) -> Verdict | None:
    """Judge a fault of the network that says exactly what happened, or return None."""
    names = names_of(type(error))
    by_name = _lookup(_EXACT, names)
    # urllib3 derives "no connection at all", unknown hosts included, from its connect time-out.
    if by_name is not None and _NEW_CONNECTION not in names:
        return by_name
    if is_a(error, socket.gaierror):
        return DNS_TRANSIENT if _errno_of(error) in _DNS_TRANSIENT else DNS_UNKNOWN_HOST
    if "ssl.SSLError" in names:
        return _judge_tls(names)
    if is_a(error, TimeoutError):
        return TIMEOUT
    if is_a(error, ConnectionRefusedError):
        return REFUSED
    if is_a(error, ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
        return RESET
    if is_a(error, OSError):
        return _ERRNOS.get(_errno_of(error) or 0)
    return None


def classify_connection(error: BaseException) -> Verdict | None:
    """Judge an exception that only says that the connection failed, or return None."""
    return _lookup(_GENERAL, names_of(type(error)))


def _lookup(table: Mapping[str, Verdict], names: frozenset[str]) -> Verdict | None:
    # In the table's order: it lists the narrower class before the wider.
    if table.keys().isdisjoint(names):
        return None
    return next(verdict for name, verdict in table.items() if name in names)


def _judge_tls(names: frozenset[str]) -> Verdict:
    if "ssl.SSLCertVerificationError" in names:
        return CERTIFICATE
    if "ssl.SSLEOFError" in names or "ssl.SSLZeroReturnError" in names:
        return RESET
    return TLS


def _errno_of(error: BaseException) -> int | None:
    number = probe(error, "errno")
    if not isinstance(number, int):
        number = first_argument(error)
    return number if isinstance(number, int) else None
