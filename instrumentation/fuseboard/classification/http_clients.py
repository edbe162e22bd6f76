"""Exceptions of HTTP clients that carry no status: httpx, requests, urllib3, aiohttp and others."""

from __future__ import annotations

from typing import Final

from fuseboard.classification.naming import Named
from fuseboard.classification.network import CERTIFICATE, CONNECT_TIMEOUT, POOL, RESET, TIMEOUT, TLS
from fuseboard.classification.verdicts import (
    input_fault,
    persistent_fault,
    transient_fault,
)
from fuseboard.record import Verdict

LOST: Final = transient_fault("connection_matcher", ambiguous=True)
CONNECT_FAILED: Final = transient_fault("connect_matcher", ambiguous=False)
# An address or a header that no request can be made from.
_NO_REQUEST: Final = input_fault("invalid_request_matcher")
_REDIRECTS: Final = persistent_fault("redirect_matcher")
# Too many answers with a status that the client was told to repeat.
_EXHAUSTED: Final = transient_fault("client_retries_matcher", ambiguous=True)
# The client was used in a way that it does not allow.
_MISUSED: Final = persistent_fault("client_misuse_matcher", ambiguous=True)

_EXACT: Final = Named(
    {
        "httpx.PoolTimeout": POOL,
        "httpcore.PoolTimeout": POOL,
        "httpx.ConnectTimeout": CONNECT_TIMEOUT,
        "httpcore.ConnectTimeout": CONNECT_TIMEOUT,
        "httpx.TimeoutException": TIMEOUT,
        "httpcore.TimeoutException": TIMEOUT,
        "httpx.ReadError": RESET,
        "httpx.WriteError": RESET,
        "httpx.RemoteProtocolError": RESET,
        "httpx.LocalProtocolError": _NO_REQUEST,
        "httpx.UnsupportedProtocol": _NO_REQUEST,
        "httpx.InvalidURL": _NO_REQUEST,
        "httpx.TooManyRedirects": _REDIRECTS,
        "httpx.StreamError": _MISUSED,
        "urllib3.exceptions.EmptyPoolError": POOL,
        "urllib3.exceptions.FullPoolError": POOL,
        "urllib3.exceptions.ClosedPoolError": _MISUSED,
        "urllib3.exceptions.ConnectTimeoutError": CONNECT_TIMEOUT,
        # Derived from the connect time-out, yet says only "no connection", to unknown hosts too.
        "urllib3.exceptions.NewConnectionError": None,
        "urllib3.exceptions.ReadTimeoutError": TIMEOUT,
        "urllib3.exceptions.LocationValueError": _NO_REQUEST,
        "requests.exceptions.ConnectTimeout": CONNECT_TIMEOUT,
        "requests.exceptions.ReadTimeout": TIMEOUT,
        "requests.exceptions.ChunkedEncodingError": RESET,
        "requests.exceptions.MissingSchema": _NO_REQUEST,
        "requests.exceptions.InvalidSchema": _NO_REQUEST,
        "requests.exceptions.InvalidURL": _NO_REQUEST,
        "requests.exceptions.InvalidHeader": _NO_REQUEST,
        "requests.exceptions.URLRequired": _NO_REQUEST,
        "requests.exceptions.TooManyRedirects": _REDIRECTS,
        "requests.exceptions.StreamConsumedError": _MISUSED,
        "aiohttp.client_exceptions.ConnectionTimeoutError": CONNECT_TIMEOUT,
        "aiohttp.client_exceptions.ServerTimeoutError": TIMEOUT,
        "aiohttp.client_exceptions.ServerDisconnectedError": RESET,
        "aiohttp.client_exceptions.ClientPayloadError": RESET,
        "aiohttp.client_exceptions.ClientConnectorCertificateError": CERTIFICATE,
        "aiohttp.client_exceptions.ServerFingerprintMismatch": CERTIFICATE,
        "aiohttp.client_exceptions.InvalidUrlRedirectClientError": _REDIRECTS,
        "aiohttp.client_exceptions.NonHttpUrlRedirectClientError": _REDIRECTS,
        "aiohttp.client_exceptions.TooManyRedirects": _REDIRECTS,
        "aiohttp.client_exceptions.InvalidURL": _NO_REQUEST,
        "aiohttp.client_exceptions.NonHttpUrlClientError": _NO_REQUEST,
        "http.client.IncompleteRead": RESET,
        "http.client.BadStatusLine": RESET,
        "http.client.InvalidURL": _NO_REQUEST,
        "http.client.ImproperConnectionState": _MISUSED,
        "urllib.error.ContentTooShortError": RESET,
        "anyio.BrokenResourceError": RESET,
        "anyio.EndOfStream": RESET,
    }
)

# Names that only say "the connection"; used when nothing deeper says more.
_GENERAL: Final = Named(
    {
        "httpx.ConnectError": CONNECT_FAILED,
        "httpcore.ConnectError": CONNECT_FAILED,
        "httpx.ProxyError": CONNECT_FAILED,
        "httpcore.ProxyError": CONNECT_FAILED,
        "httpx.NetworkError": LOST,
        "httpcore.NetworkError": LOST,
        # With a status of 400 or more it has been judged before: this one is a redirect.
        "httpx.HTTPStatusError": _REDIRECTS,
        "urllib3.exceptions.NewConnectionError": CONNECT_FAILED,
        "urllib3.exceptions.ProxyError": CONNECT_FAILED,
        "urllib3.exceptions.SSLError": TLS,
        "urllib3.exceptions.ProtocolError": RESET,
        "urllib3.exceptions.ResponseError": _EXHAUSTED,
        "requests.exceptions.SSLError": TLS,
        "requests.exceptions.ProxyError": CONNECT_FAILED,
        "requests.exceptions.Timeout": TIMEOUT,
        "requests.exceptions.ConnectionError": LOST,
        "requests.exceptions.RetryError": _EXHAUSTED,
        "aiohttp.client_exceptions.ClientSSLError": TLS,
        "aiohttp.client_exceptions.ClientConnectorSSLError": TLS,
        "aiohttp.client_exceptions.ClientConnectorError": CONNECT_FAILED,
        "aiohttp.client_exceptions.ClientConnectionError": LOST,
        "urllib.error.URLError": LOST,
        "ConnectionError": LOST,
    }
)


def classify_client(error: BaseException) -> Verdict | None:
    """Judge an exception of an HTTP client that says exactly what happened, or return None."""
    return _EXACT.of(type(error))


def classify_connection(error: BaseException) -> Verdict | None:
    """Judge an exception that only says that the connection failed, or return None."""
    return _GENERAL.of(type(error))
