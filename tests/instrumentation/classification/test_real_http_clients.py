"""Exceptions that HTTP clients really raise, and all that is said of them."""

from __future__ import annotations

import asyncio
import http.client
import socket
import urllib.error
import urllib.request
from typing import Any

import aiohttp
import httpx
import requests
import requests.adapters
import urllib3
from tests.instrumentation.classification.expected import (
    AMBIGUOUS,
    SAFE,
    Row,
    each,
    l1,
    l2,
    l3,
    l4,
    l5,
)
from tests.instrumentation.classification.places import (
    PATIENCE,
    Places,
    patience_for,
    without_names,
)

AFTER = {"retry-after": "7"}
DATE = {"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}  # NOW + 30 s
MILLISECONDS = {"retry-after": "9", "retry-after-ms": "1500"}
QUOTA = {"error": {"code": "insufficient_quota", "message": "check your plan"}}


def by_httpx(url: str, **options: Any) -> Any:
    timeout = options.pop("timeout", patience_for(url))
    with httpx.Client(trust_env=False, timeout=timeout, **options) as client:
        return client.get(url).raise_for_status()


def by_httpx_async(url: str) -> Any:
    async def get() -> Any:
        async with httpx.AsyncClient(trust_env=False, timeout=patience_for(url)) as client:
            return (await client.get(url)).raise_for_status()

    return asyncio.run(get())


def through_a_full_pool(places: Places) -> None:
    async def get() -> None:
        limits = httpx.Limits(max_connections=1)
        timeout = httpx.Timeout(10, pool=0.05)
        async with (
            httpx.AsyncClient(trust_env=False, limits=limits, timeout=timeout) as client,
            client.stream("GET", places.http(200)),
        ):
            await client.get(places.http(200))

    asyncio.run(get())


def read_twice(places: Places) -> None:
    with httpx.Client(trust_env=False) as client, client.stream("GET", places.http(200)) as answer:
        list(answer.iter_raw())
        list(answer.iter_raw())


def by_requests(url: str, **options: Any) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, **{"timeout": patience_for(url), **options})
        answer.raise_for_status()
        return answer


def by_requests_retrying(url: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        again = urllib3.Retry(1, status_forcelist=[503], backoff_factor=0)
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=again))
        session.get(url, timeout=5)


def by_aiohttp(url: str, read: bool = False, **timeouts: Any) -> Any:
    async def get() -> Any:
        timeout = aiohttp.ClientTimeout(**(timeouts or {"sock_read": patience_for(url)}))
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            answer.raise_for_status()
            return await answer.json() if read else await answer.read()

    return asyncio.run(get())


def by_websocket(url: str) -> None:
    async def connect() -> None:
        async with aiohttp.ClientSession() as session, session.ws_connect(url):
            pass

    asyncio.run(connect())


def by_urllib3(url: str, **options: Any) -> urllib3.BaseHTTPResponse:
    with urllib3.PoolManager() as pool:
        return pool.request(
            "GET", url, **{"retries": False, "timeout": patience_for(url), **options}
        )


def from_a_blocking_pool(places: Places) -> None:
    with urllib3.HTTPConnectionPool("127.0.0.1", 1, maxsize=1, block=True) as pool:
        pool._get_conn()
        pool._get_conn(timeout=0.05)


def by_urllib(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=patience_for(url)) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        error.close()
        raise


def by_http_client(url: str) -> None:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.request("GET", f"/{path}")
        connection.getresponse()
    finally:
        connection.close()


def asked_twice(places: Places) -> None:
    host = places.hanging.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.putrequest("GET", "/")
        connection.putrequest("GET", "/")
    finally:
        connection.close()


def with_unknown_name(get: Any, code: int) -> None:
    with without_names(code):
        get("http://weather.invalid/")


STATUS = "httpx.HTTPStatusError"
HTTPX = [
    Row("httpx: 400", lambda at: by_httpx(at.http(400)), STATUS, l1("http_4xx_matcher", 400)),
    Row("httpx: 401", lambda at: by_httpx(at.http(401)), STATUS, l2("http_4xx_matcher", 401)),
    Row("httpx: 402", lambda at: by_httpx(at.http(402)), STATUS, l2("http_4xx_matcher", 402)),
    Row("httpx: 403", lambda at: by_httpx(at.http(403)), STATUS, l2("http_4xx_matcher", 403)),
    Row("httpx: 404", lambda at: by_httpx(at.http(404)), STATUS, l1("http_4xx_matcher", 404)),
    Row("httpx: 408", lambda at: by_httpx(at.http(408)), STATUS,
        l3("http_4xx_matcher", AMBIGUOUS, 408)),
    Row("httpx: 409", lambda at: by_httpx(at.http(409)), STATUS, l1("http_4xx_matcher", 409)),
    Row("httpx: 410", lambda at: by_httpx(at.http(410)), STATUS,
        l4("http_4xx_matcher", SAFE, 410)),
    Row("httpx: 413", lambda at: by_httpx(at.http(413)), STATUS, l1("http_4xx_matcher", 413)),
    Row("httpx: 422", lambda at: by_httpx(at.http(422)), STATUS, l1("http_4xx_matcher", 422)),
    Row("httpx: 425", lambda at: by_httpx(at.http(425)), STATUS, l3("http_4xx_matcher", SAFE, 425)),
    Row("httpx: 429 with seconds", lambda at: by_httpx(at.http(429, headers=AFTER)), STATUS,
        l3("http_4xx_matcher", SAFE, 429, 7.0)),
    Row("httpx: 429 with a date", lambda at: by_httpx(at.http(429, headers=DATE)), STATUS,
        l3("http_4xx_matcher", SAFE, 429, 30.0)),
    Row("httpx: 429 with milliseconds", lambda at: by_httpx(at.http(429, headers=MILLISECONDS)),
        STATUS, l3("http_4xx_matcher", SAFE, 429, 1.5)),
    Row("httpx: 429 of a quota", lambda at: by_httpx(at.http(429, QUOTA)), STATUS,
        l2("http_quota_matcher", 429)),
    Row("httpx: 500", lambda at: by_httpx(at.http(500)), STATUS,
        l3("http_5xx_matcher", AMBIGUOUS, 500)),
    Row("httpx: 501", lambda at: by_httpx(at.http(501)), STATUS, l4("http_5xx_matcher", SAFE, 501)),
    Row("httpx: 502", lambda at: by_httpx(at.http(502)), STATUS,
        l3("http_5xx_matcher", AMBIGUOUS, 502)),
    Row("httpx: 503", lambda at: by_httpx(at.http(503)), STATUS,
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("httpx: 503 with seconds", lambda at: by_httpx(at.http(503, headers=AFTER)), STATUS,
        l3("http_5xx_matcher", SAFE, 503, 7.0)),
    Row("httpx: 504", lambda at: by_httpx(at.http(504)), STATUS,
        l3("http_5xx_matcher", AMBIGUOUS, 504)),
    Row("httpx: a redirect not followed", lambda at: by_httpx(at.circle), STATUS,
        l4("redirect_matcher")),
    Row("httpx: redirects in a circle", lambda at: by_httpx(at.circle, follow_redirects=True),
        "httpx.TooManyRedirects", l4("redirect_matcher")),
    Row("httpx: refused", lambda at: by_httpx(at.refused), "httpx.ConnectError",
        l3("connection_refused_matcher", SAFE)),
    Row("httpx, async: refused", lambda at: by_httpx_async(at.refused), "httpx.ConnectError",
        l3("connection_refused_matcher", SAFE)),
    Row("httpx: name unknown", lambda at: with_unknown_name(by_httpx, socket.EAI_NONAME),
        "httpx.ConnectError", l4("dns_unknown_host_matcher")),
    Row("httpx: no answer of the name server",
        lambda at: with_unknown_name(by_httpx, socket.EAI_AGAIN),
        "httpx.ConnectError", l3("dns_temporary_matcher", SAFE)),
    Row("httpx: untrusted certificate", lambda at: by_httpx(at.untrusted), "httpx.ConnectError",
        l4("certificate_matcher")),
    Row("httpx: no TLS there", lambda at: by_httpx(at.plain), "httpx.ConnectError",
        l4("tls_matcher")),
    Row("httpx: read time-out", lambda at: by_httpx(at.hanging), "httpx.ReadTimeout",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("httpx: connect time-out", lambda at: by_httpx("http://127.0.0.1:1/", transport=Slow()),
        "httpx.ConnectTimeout", l3("connect_timeout_matcher", SAFE)),
    Row("httpx: pool exhausted", through_a_full_pool, "httpx.PoolTimeout",
        l3("pool_exhausted_matcher", SAFE)),
    Row("httpx: cut before the answer", lambda at: by_httpx(at.cut),
        "httpx.RemoteProtocolError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("httpx: cut in the answer", lambda at: by_httpx(at.half),
        "httpx.RemoteProtocolError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("httpx: proxy refuses", lambda at: by_httpx("https://x.test/", proxy=at.proxy),
        "httpx.ProxyError", l3("connect_matcher", SAFE)),
    Row("httpx: no such protocol", lambda at: by_httpx("ftp://x.test/"),
        "httpx.UnsupportedProtocol", l1("invalid_request_matcher")),
    Row("httpx: no address", lambda at: by_httpx("http://x.test:y/"), "httpx.InvalidURL",
        l1("invalid_request_matcher")),
    Row("httpx: illegal header", lambda at: by_httpx(at.http(200), headers={"a": "b\nc"}),
        "httpx.LocalProtocolError", l1("invalid_request_matcher")),
    Row("httpx: broken encoding",
        lambda at: by_httpx(at.http(200, "no gzip", {"content-encoding": "gzip"})),
        "httpx.DecodingError", l5("malformed_data_matcher")),
    Row("httpx: no JSON", lambda at: by_httpx(at.http(200, "<html>")).json(),
        "json.decoder.JSONDecodeError", l5("malformed_data_matcher")),
    Row("httpx: stream read twice", read_twice, "httpx.StreamConsumed",
        l4("client_misuse_matcher", AMBIGUOUS)),
]  # fmt: skip


class Slow(httpx.HTTPTransport):
    """Raises what a connection attempt raises that finds nobody in time.

    No address of this machine lets one hang without root.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("timed out", request=request)


REQUESTS = [
    Row("requests: 400", lambda at: by_requests(at.http(400)), "requests.exceptions.HTTPError",
        l1("http_4xx_matcher", 400)),
    Row("requests: 401", lambda at: by_requests(at.http(401)), "requests.exceptions.HTTPError",
        l2("http_4xx_matcher", 401)),
    Row("requests: 429", lambda at: by_requests(at.http(429, headers=AFTER)),
        "requests.exceptions.HTTPError", l3("http_4xx_matcher", SAFE, 429, 7.0)),
    Row("requests: 429 of a quota", lambda at: by_requests(at.http(429, QUOTA)),
        "requests.exceptions.HTTPError", l2("http_quota_matcher", 429)),
    Row("requests: 503", lambda at: by_requests(at.http(503)), "requests.exceptions.HTTPError",
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("requests: refused", lambda at: by_requests(at.refused),
        "requests.exceptions.ConnectionError", l3("connection_refused_matcher", SAFE)),
    Row("requests: name unknown", lambda at: with_unknown_name(by_requests, socket.EAI_NONAME),
        "requests.exceptions.ConnectionError", l4("dns_unknown_host_matcher")),
    Row("requests: untrusted certificate", lambda at: by_requests(at.untrusted),
        "requests.exceptions.SSLError", l4("certificate_matcher")),
    Row("requests: no TLS there", lambda at: by_requests(at.plain),
        "requests.exceptions.SSLError", l4("tls_matcher")),
    Row("requests: read time-out", lambda at: by_requests(at.hanging),
        "requests.exceptions.ReadTimeout", l3("timeout_matcher", AMBIGUOUS)),
    Row("requests: cut before the answer", lambda at: by_requests(at.cut),
        "requests.exceptions.ConnectionError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("requests: cut in the answer", lambda at: by_requests(at.half),
        "requests.exceptions.ChunkedEncodingError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("requests: proxy refused",
        lambda at: by_requests("http://x.test/", proxies={"http": at.refused}),
        "requests.exceptions.ProxyError", l3("connection_refused_matcher", SAFE)),
    Row("requests: redirects in a circle", lambda at: by_requests(at.circle),
        "requests.exceptions.TooManyRedirects", l4("redirect_matcher")),
    Row("requests: its own retries used up", lambda at: by_requests_retrying(at.http(503)),
        "requests.exceptions.RetryError", l3("client_retries_matcher", AMBIGUOUS)),
    Row("requests: no scheme", lambda at: by_requests("weather.test"),
        "requests.exceptions.MissingSchema", l1("invalid_request_matcher")),
    Row("requests: no such scheme", lambda at: by_requests("ftp://weather.test"),
        "requests.exceptions.InvalidSchema", l1("invalid_request_matcher")),
    Row("requests: no address", lambda at: by_requests("http://*weather.test"),
        "requests.exceptions.InvalidURL", l1("invalid_request_matcher")),
    Row("requests: illegal header", lambda at: by_requests(at.http(200), headers={"a": "b\nc"}),
        "requests.exceptions.InvalidHeader", l1("invalid_request_matcher")),
    Row("requests: broken encoding",
        lambda at: by_requests(at.http(200, "no gzip", {"content-encoding": "gzip"})),
        "requests.exceptions.ContentDecodingError", l5("malformed_data_matcher")),
    Row("requests: no JSON", lambda at: by_requests(at.http(200, "<html>")).json(),
        "requests.exceptions.JSONDecodeError", l5("malformed_data_matcher")),
]  # fmt: skip

CLIENT = "aiohttp.client_exceptions."
AIOHTTP = [
    Row("aiohttp: 404", lambda at: by_aiohttp(at.http(404)), f"{CLIENT}ClientResponseError",
        l1("http_4xx_matcher", 404)),
    Row("aiohttp: 403", lambda at: by_aiohttp(at.http(403)), f"{CLIENT}ClientResponseError",
        l2("http_4xx_matcher", 403)),
    Row("aiohttp: 429", lambda at: by_aiohttp(at.http(429, headers=AFTER)),
        f"{CLIENT}ClientResponseError", l3("http_4xx_matcher", SAFE, 429, 7.0)),
    Row("aiohttp: 503", lambda at: by_aiohttp(at.http(503, headers=AFTER)),
        f"{CLIENT}ClientResponseError", l3("http_5xx_matcher", SAFE, 503, 7.0)),
    Row("aiohttp: refused", lambda at: by_aiohttp(at.refused), f"{CLIENT}ClientConnectorError",
        l3("connection_refused_matcher", SAFE)),
    Row("aiohttp: name unknown", lambda at: with_unknown_name(by_aiohttp, socket.EAI_NONAME),
        f"{CLIENT}ClientConnectorDNSError", l4("dns_unknown_host_matcher")),
    Row("aiohttp: no answer of the name server",
        lambda at: with_unknown_name(by_aiohttp, socket.EAI_AGAIN),
        f"{CLIENT}ClientConnectorDNSError", l3("dns_temporary_matcher", SAFE)),
    Row("aiohttp: untrusted certificate", lambda at: by_aiohttp(at.untrusted),
        f"{CLIENT}ClientConnectorCertificateError", l4("certificate_matcher")),
    Row("aiohttp: no TLS there", lambda at: by_aiohttp(at.plain),
        f"{CLIENT}ClientConnectorSSLError", l4("tls_matcher")),
    Row("aiohttp: read time-out", lambda at: by_aiohttp(at.hanging),
        f"{CLIENT}SocketTimeoutError", l3("timeout_matcher", AMBIGUOUS)),
    Row("aiohttp: time-out of the whole", lambda at: by_aiohttp(at.hanging, total=PATIENCE),
        "TimeoutError", l3("timeout_matcher", AMBIGUOUS)),
    Row("aiohttp: cut before the answer", lambda at: by_aiohttp(at.cut),
        f"{CLIENT}ServerDisconnectedError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("aiohttp: cut in the answer", lambda at: by_aiohttp(at.half),
        f"{CLIENT}ClientPayloadError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("aiohttp: redirects in a circle", lambda at: by_aiohttp(at.circle),
        f"{CLIENT}TooManyRedirects", l4("redirect_matcher")),
    Row("aiohttp: redirected to no address",
        lambda at: by_aiohttp(at.http(302, headers={"location": "ftp://x.test/"})),
        f"{CLIENT}NonHttpUrlRedirectClientError", l4("redirect_matcher")),
    Row("aiohttp: no address", lambda at: by_aiohttp("weather.test"),
        f"{CLIENT}InvalidUrlClientError", l1("invalid_request_matcher")),
    Row("aiohttp: no such scheme", lambda at: by_aiohttp("ftp://weather.test"),
        f"{CLIENT}NonHttpUrlClientError", l1("invalid_request_matcher")),
    Row("aiohttp: another content type", lambda at: by_aiohttp(at.http(200, "<html>"), read=True),
        f"{CLIENT}ContentTypeError", l5("malformed_data_matcher")),
    Row("aiohttp: no websocket there", lambda at: by_websocket(at.http(403)),
        f"{CLIENT}WSServerHandshakeError", l2("http_4xx_matcher", 403)),
]  # fmt: skip

OTHERS = [
    Row("urllib3: refused", lambda at: by_urllib3(at.refused),
        "urllib3.exceptions.NewConnectionError", l3("connection_refused_matcher", SAFE)),
    Row("urllib3: refused again and again", lambda at: by_urllib3(at.refused, retries=1),
        "urllib3.exceptions.MaxRetryError", l3("connection_refused_matcher", SAFE)),
    Row("urllib3: name unknown", lambda at: with_unknown_name(by_urllib3, socket.EAI_NONAME),
        "urllib3.exceptions.NameResolutionError", l4("dns_unknown_host_matcher")),
    Row("urllib3: untrusted certificate", lambda at: by_urllib3(at.untrusted, retries=0),
        "urllib3.exceptions.MaxRetryError", l4("certificate_matcher")),
    Row("urllib3: read time-out", lambda at: by_urllib3(at.hanging),
        "urllib3.exceptions.ReadTimeoutError", l3("timeout_matcher", AMBIGUOUS)),
    Row("urllib3: cut before the answer", lambda at: by_urllib3(at.cut),
        "urllib3.exceptions.ProtocolError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("urllib3: cut in the answer", lambda at: by_urllib3(at.half),
        "urllib3.exceptions.ProtocolError", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("urllib3: too many answers of 503",
        lambda at: by_urllib3(at.http(503), retries=urllib3.Retry(1, status_forcelist=[503])),
        "urllib3.exceptions.MaxRetryError", l3("client_retries_matcher", AMBIGUOUS)),
    Row("urllib3: pool exhausted", from_a_blocking_pool, "urllib3.exceptions.EmptyPoolError",
        l3("pool_exhausted_matcher", SAFE)),
    Row("urllib3: no address", lambda at: by_urllib3("http://[x/"),
        "urllib3.exceptions.LocationParseError", l1("invalid_request_matcher")),
    Row("urllib3: broken encoding",
        lambda at: by_urllib3(at.http(200, "no gzip", {"content-encoding": "gzip"})),
        "urllib3.exceptions.DecodeError", l5("malformed_data_matcher")),
    Row("urllib: 404", lambda at: by_urllib(at.http(404)), "urllib.error.HTTPError",
        l1("http_4xx_matcher", 404)),
    Row("urllib: 429", lambda at: by_urllib(at.http(429, headers=AFTER)), "urllib.error.HTTPError",
        l3("http_4xx_matcher", SAFE, 429, 7.0)),
    Row("urllib: refused", lambda at: by_urllib(at.refused), "urllib.error.URLError",
        l3("connection_refused_matcher", SAFE)),
    Row("urllib: name unknown", lambda at: with_unknown_name(by_urllib, socket.EAI_NONAME),
        "urllib.error.URLError", l4("dns_unknown_host_matcher")),
    Row("urllib: untrusted certificate", lambda at: by_urllib(at.untrusted),
        "urllib.error.URLError", l4("certificate_matcher")),
    Row("urllib: time-out", lambda at: by_urllib(at.hanging), "TimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("urllib: cut before the answer", lambda at: by_urllib(at.cut),
        "http.client.RemoteDisconnected", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("urllib: cut in the answer", lambda at: by_urllib(at.half),
        "http.client.IncompleteRead", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("http.client: no status line", lambda at: by_http_client(at.raw(b"no HTTP\r\n\r\n")),
        "http.client.BadStatusLine", l3("connection_reset_matcher", AMBIGUOUS)),
    Row("http.client: no address", lambda at: by_http_client("http://127.0.0.1:1/a b"),
        "http.client.InvalidURL", l1("invalid_request_matcher")),
    Row("http.client: asked twice", asked_twice, "http.client.CannotSendRequest",
        l4("client_misuse_matcher", AMBIGUOUS)),
]  # fmt: skip


@each([*HTTPX, *REQUESTS, *AIOHTTP, *OTHERS])
def test_hc_19_exceptions_of_http_clients(row: Row, places: Places) -> None:
    row.check(places)
