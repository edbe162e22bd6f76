"""HC-19: the shapes in which clients raise, real ones where the client is installed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.server
import json
import socket
import sqlite3
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import aiohttp
import httpx
import jsonschema
import pydantic
import pytest
import requests
from mcp.shared.exceptions import MCPError

from fuseboard import AttemptTimeoutError, BudgetExhaustedError, CircuitOpenError, ErrorClass
from fuseboard.classification import judge_exception
from fuseboard.classification.inspecting import qualified_name
from fuseboard.record import Fault, Verdict

L1, L2, L3, L4, L5, UN = (
    ErrorClass.L1_INPUT,
    ErrorClass.L2_ACCESS,
    ErrorClass.L3_TRANSIENT,
    ErrorClass.L4_PERSISTENT,
    ErrorClass.L5_SEMANTIC,
    ErrorClass.UNCLASSIFIED,
)
NOW = 1_800_000_000.0


def judge(error: BaseException) -> Verdict:
    fault = judge_exception(error, NOW)
    assert isinstance(fault, Fault)
    assert fault.error_type == qualified_name(type(error))
    return fault.verdict


def make(name: str, bases: tuple[type, ...] = (Exception,), **attributes: Any) -> BaseException:
    """Return an exception of a class with this qualified name and these attributes."""
    module, _, short = name.rpartition(".")
    error: BaseException = type(short, bases, {"__module__": module, "__qualname__": short})("?")
    for key, value in attributes.items():
        setattr(error, key, value)
    return error


class Bag:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class GrpcCode(Enum):
    UNAVAILABLE = (14, "unavailable")
    INVALID_ARGUMENT = (3, "invalid")
    UNAUTHENTICATED = (16, "who?")
    UNIMPLEMENTED = (12, "no")
    RESOURCE_EXHAUSTED = (8, "slow down")


def grpc(code: GrpcCode) -> BaseException:
    return make("grpc.RpcError", code=lambda: code, details=lambda: "text")


def mcp(code: int, data: Any = None) -> MCPError:
    return MCPError(code, "message", data)


def botocore(status: int, code: str) -> BaseException:
    response = {
        "Error": {"Code": code},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {"retry-after": "2"}},
    }
    return make("botocore.exceptions.ClientError", response=response)


# (exception, class, HTTP status, retryable, ambiguous)
FAKES: list[tuple[BaseException, ErrorClass, int | None, bool, bool]] = [
    (make("openai.RateLimitError", status_code=429), L3, 429, True, False),
    (make("openai.RateLimitError", status_code=429, code="insufficient_quota"),
     L2, 429, False, False),
    (make("openai.RateLimitError", status_code=429, body={"error": {"code": "insufficient_quota"}}),
     L2, 429, False, False),
    (make("openai.BadRequestError", status_code=400, code="context_length_exceeded"),
     L1, 400, False, False),
    (make("openai.APITimeoutError"), L3, None, True, True),
    (make("anthropic.APIStatusError", status_code=529), L3, 529, True, True),
    (make("x.WithResponse", response=Bag(status_code=503, headers={})), L3, 503, True, True),
    (make("x.WithResponse", response=Bag(status=401, headers={})), L2, 401, False, False),
    (make("x.WithStatus", status=422), L1, 422, False, False),
    (make("x.WithCode", code=404), L1, 404, False, False),
    (make("x.WithHttpStatus", http_status=410), L4, 410, False, False),
    (make("x.BoolCode", code=True), UN, None, False, True),
    (make("x.TextCode", status_code="503"), UN, None, False, True),
    (make("x.OddCode", code=7), UN, None, False, True),
    (make("x.HugeCode", code=600), UN, None, False, True),
    (make("x.Slug", code="rate_limit_exceeded"), L3, None, True, False),
    (make("x.UnknownSlug", code="E_WEIRD"), UN, None, False, True),
    (make("x.Redirect", status_code=302), UN, None, False, True),
    (botocore(503, "SlowDown"), L3, 503, True, False),
    (botocore(403, "AccessDenied"), L2, 403, False, False),
    (grpc(GrpcCode.UNAVAILABLE), L3, None, True, True),
    (grpc(GrpcCode.RESOURCE_EXHAUSTED), L3, None, True, False),
    (grpc(GrpcCode.INVALID_ARGUMENT), L1, None, False, False),
    (grpc(GrpcCode.UNAUTHENTICATED), L2, None, False, False),
    (grpc(GrpcCode.UNIMPLEMENTED), L4, None, False, False),
    (mcp(-32602), L1, None, False, False),
    (mcp(-32601), L1, None, False, False),
    (mcp(-32001), L3, None, True, True),
    (mcp(-32000), L3, None, True, True),
    (mcp(-32603, {"httpStatus": 401}), L2, 401, False, False),
    (mcp(-1), UN, None, False, True),
    (make("botocore.exceptions.NoCredentialsError"), L2, None, False, False),
    (make("sqlalchemy.exc.TimeoutError"), L3, None, True, False),
    (make("psycopg.errors.DeadlockDetected", sqlstate="40P01"), L3, None, True, False),
    (make("httpx.PoolTimeout"), L3, None, True, False),
    (make("pydantic_ai.exceptions.UnexpectedModelBehavior"), L5, None, False, True),
    (TimeoutError(), L3, None, True, True),
    (TimeoutError(), L3, None, True, True),
    (ConnectionResetError(), L3, None, True, True),
    (BrokenPipeError(), L3, None, True, True),
    (ConnectionRefusedError(), L3, None, True, False),
    (OSError(errno.ENETUNREACH, "x"), L3, None, True, False),
    (OSError(errno.EMFILE, "x"), L3, None, True, False),
    (OSError(errno.ENOSPC, "x"), L4, None, False, True),
    (OSError("nothing known"), UN, None, False, True),
    (socket.gaierror(socket.EAI_AGAIN, "x"), L3, None, True, False),
    (socket.gaierror(socket.EAI_NONAME, "x"), L4, None, False, False),
    (ssl.SSLCertVerificationError(1, "x"), L4, None, False, False),
    (ssl.SSLEOFError(8, "x"), L3, None, True, True),
    (ssl.SSLError(1, "x"), L4, None, False, False),
    (KeyError("x"), L4, None, False, True),
    (TypeError("x"), L4, None, False, True),
    (NotImplementedError(), L4, None, False, True),
    (ZeroDivisionError(), L4, None, False, True),
    (PermissionError(), L2, None, False, False),
    (FileNotFoundError(), L1, None, False, False),
    (ValueError("x"), UN, None, False, True),
    (RuntimeError("x"), UN, None, False, True),
    (SystemExit(2), L4, None, False, True),
    (json.JSONDecodeError("x", "", 0), L5, None, False, True),
    (AttemptTimeoutError("t", 1), L3, None, True, True),
    (BudgetExhaustedError("t", 1), L4, None, False, True),
    (CircuitOpenError("t", "t/eu", 1.5, L4), L4, None, False, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "error_class", "status", "retryable", "ambiguous"),
    FAKES,
    ids=[f"{type(row[0]).__name__}-{n}" for n, row in enumerate(FAKES)],
)
def test_hc_19_shapes(
    error: BaseException,
    error_class: ErrorClass,
    status: int | None,
    retryable: bool,
    ambiguous: bool,
) -> None:
    verdict = judge(error)
    assert (verdict.error_class, verdict.http_status) == (error_class, status)
    assert (verdict.retryable, verdict.ambiguous) == (retryable, ambiguous)
    assert verdict.classifier_id


STATUSES = {
    L1: (400, 404, 405, 409, 413, 422, 451),
    L2: (401, 402, 403, 407),
    L3: (408, 425, 429, 500, 502, 503, 504, 529, 520),
    L4: (410, 501, 505),
}


@pytest.mark.parametrize(("cls", "status"), [(c, s) for c, all_ in STATUSES.items() for s in all_])
def test_status_table_of_the_contract(cls: ErrorClass, status: int) -> None:
    verdict = judge(make("x.E", status_code=status))
    assert verdict.error_class is cls
    assert verdict.http_status == status
    assert verdict.retryable is (cls is L3)


def test_hc_19_words_in_a_message_mean_nothing() -> None:
    error = make("x.E", status_code=503)
    error.args = ("401 Unauthorized: timeout, insufficient_quota",)
    assert judge(error).error_class is L3
    plain = RuntimeError("503 Service Unavailable: connection reset, rate limit")
    assert judge(plain).error_class is UN


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers /STATUS with that status, hangs on /hang and cuts the line on /cut."""

    def do_GET(self) -> None:
        path = self.path.strip("/")
        if path == "hang":
            self.server.let_go.wait(30)  # type: ignore[attr-defined]
        if path in ("hang", "cut"):
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(int(path))
        self.send_header("retry-after", "7")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    server.let_go = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.let_go.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join(10)


def get_httpx(url: str) -> None:
    httpx.get(url, timeout=0.3, trust_env=False).raise_for_status()


def get_httpx_async(url: str) -> None:
    async def get() -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=0.3) as client:
            (await client.get(url)).raise_for_status()

    asyncio.run(get())


def get_requests(url: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.get(url, timeout=0.3).raise_for_status()


def get_aiohttp(url: str) -> None:
    async def get() -> None:
        timeout = aiohttp.ClientTimeout(sock_read=0.3)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            (await session.get(url)).raise_for_status()

    asyncio.run(get())


def get_urllib(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=0.3).close()
    except urllib.error.HTTPError as error:
        error.close()
        raise


CLIENTS = [get_httpx, get_httpx_async, get_requests, get_aiohttp, get_urllib]
EACH_CLIENT = pytest.mark.parametrize("get", CLIENTS, ids=lambda get: get.__name__)


def failure(get: Callable[[str], None], url: str) -> BaseException:
    with pytest.raises(Exception) as caught:
        get(url)
    return caught.value


@EACH_CLIENT
@pytest.mark.parametrize(("status", "cls"), [(404, L1), (403, L2), (429, L3), (503, L3), (501, L4)])
def test_real_statuses(url: str, get: Any, status: int, cls: ErrorClass) -> None:
    verdict = judge(failure(get, f"{url}/{status}"))
    assert (verdict.error_class, verdict.http_status) == (cls, status)
    if cls is L3:
        assert verdict.retry_after == 7
        assert verdict.ambiguous is False


@EACH_CLIENT
def test_real_timeout(url: str, get: Any) -> None:
    verdict = judge(failure(get, f"{url}/hang"))
    assert (verdict.error_class, verdict.classifier_id) == (L3, "timeout_matcher")
    assert verdict.ambiguous


@EACH_CLIENT
def test_real_cut_connection(url: str, get: Any) -> None:
    verdict = judge(failure(get, f"{url}/cut"))
    assert (verdict.error_class, verdict.ambiguous) == (L3, True)


@EACH_CLIENT
def test_real_refused_connection(get: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        verdict = judge(failure(get, f"http://127.0.0.1:{unused.getsockname()[1]}/"))
    assert (verdict.error_class, verdict.ambiguous) == (L3, False)


@EACH_CLIENT
@pytest.mark.parametrize(
    ("code", "cls"), [(socket.EAI_AGAIN, L3), (socket.EAI_NONAME, L4)], ids=["again", "noname"]
)
def test_real_name_resolution(
    monkeypatch: pytest.MonkeyPatch, get: Any, code: int, cls: ErrorClass
) -> None:
    def unresolved(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(code, "no address")

    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    verdict = judge(failure(get, "http://weather.invalid/"))
    assert verdict.error_class is cls
    assert verdict.classifier_id.startswith("dns_")


def test_real_validation_errors() -> None:
    class Trip(pydantic.BaseModel):
        nights: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Trip(nights="many")  # type: ignore[arg-type]
    assert judge(caught.value).error_class is L1
    with pytest.raises(jsonschema.ValidationError) as refused:
        jsonschema.validate({}, {"required": ["city"]})
    assert judge(refused.value).error_class is L1


def test_real_locked_database(tmp_path: Any) -> None:
    first = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    second = sqlite3.connect(tmp_path / "x.db", timeout=0)
    first.execute("begin exclusive")
    with pytest.raises(sqlite3.OperationalError) as caught:
        second.execute("create table t (x)")
    first.close()
    second.close()
    assert judge(caught.value).classifier_id == "lock_wait_matcher"


def test_no_client_is_imported_by_the_shim() -> None:
    import subprocess
    import sys

    script = (
        "import fuseboard, sys;"
        "from fuseboard.classification import judge_exception;"
        "judge_exception(ConnectionError(), 0.0);"
        "print([m for m in ('httpx', 'requests', 'aiohttp', 'urllib3', 'pydantic', 'mcp', 'grpc')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("code", [1, 404, 429, 503])
def test_exit_code_is_no_http_status(code: int) -> None:
    verdict = judge(SystemExit(code))
    assert (verdict.classifier_id, verdict.http_status) == ("system_exit_matcher", None)
