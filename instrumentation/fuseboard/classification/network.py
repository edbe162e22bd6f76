"""Time-outs, lost and refused connections, name resolution, certificates: Python's own."""

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
BUSY: Final = transient_fault("busy_matcher", ambiguous=False)

_DNS_TRANSIENT: Final = frozenset(
    code for code in (getattr(socket, "EAI_AGAIN", None), getattr(socket, "EAI_MEMORY", None))
    if code is not None
)  # fmt: skip
# h_errno of the old resolver functions: TRY_AGAIN.
_TRY_AGAIN: Final = 2

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
    errno.ENOBUFS: POOL,
    errno.EAGAIN: BUSY,
    errno.EBUSY: BUSY,
    errno.EADDRINUSE: BUSY,
    errno.EINTR: transient_fault("interrupted_matcher", ambiguous=True),
}


def classify_network(error: BaseException) -> Verdict | None:
    """Judge a fault of the network that Python itself raises, or return None."""
    if is_a(error, socket.gaierror):
        return DNS_TRANSIENT if _errno_of(error) in _DNS_TRANSIENT else DNS_UNKNOWN_HOST
    if is_a(error, socket.herror):
        return DNS_TRANSIENT if _errno_of(error) == _TRY_AGAIN else DNS_UNKNOWN_HOST
    names = names_of(type(error))
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
