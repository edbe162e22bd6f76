"""Exceptions that clients of clouds really raise: botocore, gRPC, Google's libraries."""

from __future__ import annotations

import concurrent.futures
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.config
import botocore.session
import grpc
import pytest
from google.api_core import exceptions as google_exceptions
from google.api_core import retry as google_retry
from google.auth.transport.requests import Request
from google.oauth2 import credentials, service_account
from tests.instrumentation.classification.expected import (
    AMBIGUOUS,
    SAFE,
    Row,
    each,
    l1,
    l2,
    l3,
    l4,
)
from tests.instrumentation.classification.places import Places, patience_for, without_names

# --- botocore ------------------------------------------------------------------------------


def aws(service: str, url: str | None, **options: Any) -> Any:
    session = botocore.session.Session()
    settings = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "eu-north-1"}
    settings.update({k: v for k, v in options.items() if k in settings})
    config = botocore.config.Config(
        retries={"max_attempts": 1, "mode": "standard"},
        connect_timeout=20,
        read_timeout=patience_for(url or ""),
        parameter_validation=True,
    )
    return session.create_client(service, endpoint_url=url, config=config, **settings)


def get_item(url: str | None, **options: Any) -> None:
    key = options.pop("Key", {"id": {"S": "1"}})
    aws("dynamodb", url, **options).get_item(TableName="trips", Key=key)


def get_object(url: str) -> None:
    aws("s3", url).get_object(Bucket="trips", Key="1")


def converse(url: str) -> None:
    message = {"role": "user", "content": [{"text": "?"}]}
    aws("bedrock-runtime", url).converse(modelId="m", messages=[message])


def refused_by_aws(places: Places, code: str, status: int = 400, **headers: str) -> str:
    """Return an address that answers as the JSON protocols of AWS do."""
    body = json.dumps({"__type": f"com.amazonaws#{code}", "message": "?"})
    told = {"content-type": "application/x-amz-json-1.0", "x-amzn-errortype": code, **headers}
    return places.http(status, body, told)


def refused_by_s3(places: Places, code: str, status: int) -> str:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>?</Message></Error>"
    return places.http(status, body, {"content-type": "application/xml"})


ERROR = "botocore.exceptions."
# Classes that botocore makes for the errors that a service's model names.
MODELLED = "botocore.errorfactory."
AWS = [
    Row("aws: throttled, as 400", lambda at: get_item(refused_by_aws(at, "ThrottlingException")),
        f"{MODELLED}ThrottlingException | {ERROR}ClientError", l3("aws_code_matcher", SAFE, 400)),
    Row("aws: throttled with seconds",
        lambda at: converse(refused_by_aws(at, "ThrottlingException", 429, **{"retry-after": "4"})),
        f"{MODELLED}ThrottlingException",
        l3("aws_code_matcher", SAFE, 429, 4.0)),
    Row("aws: throughput, as 400",
        lambda at: get_item(refused_by_aws(at, "ProvisionedThroughputExceededException")),
        f"{MODELLED}ProvisionedThroughputExceededException",
        l3("aws_code_matcher", SAFE, 400)),
    Row("aws: slow down", lambda at: get_object(refused_by_s3(at, "SlowDown", 503)),
        f"{ERROR}ClientError", l3("aws_code_matcher", SAFE, 503)),
    Row("aws: request time-out, as 400",
        lambda at: get_object(refused_by_s3(at, "RequestTimeout", 400)),
        f"{ERROR}ClientError", l3("aws_code_matcher", AMBIGUOUS, 400)),
    Row("aws: another transaction",
        lambda at: get_item(refused_by_aws(at, "TransactionConflictException")),
        f"{MODELLED}TransactionConflictException", l3("aws_code_matcher", SAFE, 400)),
    Row("aws: expired token, as 400",
        lambda at: get_item(refused_by_aws(at, "ExpiredTokenException")),
        f"{ERROR}ClientError", l2("aws_code_matcher", 400)),
    Row("aws: unknown client, as 400",
        lambda at: get_item(refused_by_aws(at, "UnrecognizedClientException")),
        f"{ERROR}ClientError", l2("aws_code_matcher", 400)),
    Row("aws: denied, as 400", lambda at: get_item(refused_by_aws(at, "AccessDeniedException")),
        f"{ERROR}ClientError", l2("aws_code_matcher", 400)),
    Row("aws: denied", lambda at: get_object(refused_by_s3(at, "AccessDenied", 403)),
        f"{MODELLED}AccessDenied | {ERROR}ClientError", l2("aws_code_matcher", 403)),
    Row("aws: wrong signature",
        lambda at: get_object(refused_by_s3(at, "SignatureDoesNotMatch", 403)),
        f"{ERROR}ClientError", l2("aws_code_matcher", 403)),
    Row("aws: quota, as 400",
        lambda at: converse(refused_by_aws(at, "ServiceQuotaExceededException", 400)),
        f"{MODELLED}ServiceQuotaExceededException",
        l2("http_quota_matcher", 400)),
    Row("aws: model not ready",
        lambda at: converse(refused_by_aws(at, "ModelNotReadyException", 429)),
        f"{MODELLED}ModelNotReadyException", l3("aws_code_matcher", SAFE, 429)),
    Row("aws: model time-out",
        lambda at: converse(refused_by_aws(at, "ModelTimeoutException", 408)),
        f"{MODELLED}ModelTimeoutException",
        l3("aws_code_matcher", AMBIGUOUS, 408)),
    Row("aws: model error", lambda at: converse(refused_by_aws(at, "ModelErrorException", 424)),
        f"{MODELLED}ModelErrorException", l3("aws_code_matcher", AMBIGUOUS, 424)),
    Row("aws: invalid", lambda at: get_item(refused_by_aws(at, "ValidationException")),
        f"{ERROR}ClientError", l1("http_4xx_matcher", 400)),
    Row("aws: no such table", lambda at: get_item(refused_by_aws(at, "ResourceNotFoundException")),
        f"{MODELLED}ResourceNotFoundException", l1("http_4xx_matcher", 400)),
    Row("aws: condition failed",
        lambda at: get_item(refused_by_aws(at, "ConditionalCheckFailedException")),
        f"{MODELLED}ConditionalCheckFailedException", l1("http_4xx_matcher", 400)),
    Row("aws: no such key", lambda at: get_object(refused_by_s3(at, "NoSuchKey", 404)),
        f"{MODELLED}NoSuchKey", l1("http_4xx_matcher", 404)),
    Row("aws: internal", lambda at: get_item(refused_by_aws(at, "InternalServerError", 500)),
        f"{MODELLED}InternalServerError", l3("aws_code_matcher", AMBIGUOUS, 500)),
    Row("aws: 503 of a proxy", lambda at: get_item(at.http(503, "<html>away</html>")),
        f"{ERROR}ClientError", l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("aws: no credentials",
        lambda at: get_item(at.refused, aws_access_key_id=None, aws_secret_access_key=None),
        f"{ERROR}NoCredentialsError", l2("credentials_matcher")),
    Row("aws: half of the credentials",
        lambda at: get_item(at.refused, aws_secret_access_key=None),
        f"{ERROR}PartialCredentialsError", l2("credentials_matcher")),
    Row("aws: no region", lambda at: get_item(None, region_name=None),
        f"{ERROR}NoRegionError", l4("client_configuration_matcher")),
    Row("aws: no such region", lambda at: get_item(None, region_name="eu north"),
        f"{ERROR}InvalidRegionError", l4("client_configuration_matcher")),
    Row("aws: wrong parameters", lambda at: get_item(at.refused, Key=1),
        f"{ERROR}ParamValidationError", l1("schema_validation_matcher")),
    Row("aws: refused", lambda at: get_item(at.refused), f"{ERROR}EndpointConnectionError",
        l3("connection_refused_matcher", SAFE)),
    Row("aws: name unknown", lambda at: unknown_to_aws(), f"{ERROR}EndpointConnectionError",
        l4("dns_unknown_host_matcher")),
    Row("aws: untrusted certificate", lambda at: get_item(at.untrusted), f"{ERROR}SSLError",
        l4("certificate_matcher")),
    Row("aws: read time-out", lambda at: get_item(at.hanging), f"{ERROR}ReadTimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("aws: cut", lambda at: get_item(at.cut), f"{ERROR}ConnectionClosedError",
        l3("connection_reset_matcher", AMBIGUOUS)),
]  # fmt: skip


def unknown_to_aws() -> None:
    with without_names(-2):
        get_item("http://dynamodb.invalid")


@each(AWS)
def test_hc_19_exceptions_of_botocore(
    row: Row, places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Nothing of the machine's own set-up: no profile, no metadata service.
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    row.check(places)


# --- gRPC ----------------------------------------------------------------------------------

RPC = "grpc._channel._InactiveRpcError"
AIO = "grpc.aio._call.AioRpcError"


class Refusing(grpc.GenericRpcHandler):
    """Ends each call with the code that its method is named after."""

    def service(self, details: Any) -> Any:
        name = details.method.rsplit("/", 1)[1]
        if name == "UNIMPLEMENTED":
            return None

        def end(request: bytes, context: grpc.ServicerContext) -> bytes:
            if name == "BUG":
                raise KeyError("a defect of the server's")
            if name == "SLOW":
                context.add_callback(lambda: None)
                while context.is_active():
                    pass
            context.abort(grpc.StatusCode[name], "?")

        return grpc.unary_unary_rpc_method_handler(end)


@pytest.fixture(scope="module")
def grpc_port() -> Iterator[int]:
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Refusing(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait(10)


def call_rpc(port: int, method: str, timeout: float | None = 10) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary(f"/weather/{method}")(b"", timeout=timeout)


def call_rpc_async(port: int, method: str) -> None:
    import asyncio

    async def call() -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await channel.unary_unary(f"/weather/{method}")(b"", timeout=10)

    asyncio.run(call())


def wait_for_channel(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=0.1)


NAME = "grpc_matcher"
CODES = {
    "INVALID_ARGUMENT": l1(NAME),
    "NOT_FOUND": l1(NAME),
    "ALREADY_EXISTS": l1(NAME),
    "FAILED_PRECONDITION": l1(NAME),
    "OUT_OF_RANGE": l1(NAME),
    "UNAUTHENTICATED": l2(NAME),
    "PERMISSION_DENIED": l2(NAME),
    "RESOURCE_EXHAUSTED": l3(NAME, SAFE),
    "ABORTED": l3(NAME, SAFE),
    "UNAVAILABLE": l3(NAME, AMBIGUOUS),
    "DEADLINE_EXCEEDED": l3(NAME, AMBIGUOUS),
    "INTERNAL": l3(NAME, AMBIGUOUS),
    "UNKNOWN": l3(NAME, AMBIGUOUS),
    "CANCELLED": l3(NAME, AMBIGUOUS),
    "UNIMPLEMENTED": l4(NAME),
    "DATA_LOSS": l4(NAME, AMBIGUOUS),
    "BUG": l3(NAME, AMBIGUOUS),
}


@pytest.mark.parametrize("code", CODES)
def test_hc_19_codes_of_grpc(code: str, grpc_port: int, places: Places) -> None:
    Row(code, lambda at: call_rpc(grpc_port, code), RPC, CODES[code]).check(places)
    Row(code, lambda at: call_rpc_async(grpc_port, code), AIO, CODES[code]).check(places)


def test_hc_19_calls_of_grpc_that_meet_nobody(grpc_port: int, places: Places) -> None:
    late = Row("late", lambda at: call_rpc(grpc_port, "SLOW", 0.1), RPC,
               l3("grpc_matcher", AMBIGUOUS))  # fmt: skip
    refused = Row("refused", lambda at: call_rpc(at.refused_port, "X"), RPC,
                  l3("grpc_matcher", AMBIGUOUS))  # fmt: skip
    waiting = Row("waiting", lambda at: wait_for_channel(at.refused_port),
                  "grpc.FutureTimeoutError", l3("timeout_matcher", AMBIGUOUS))  # fmt: skip
    for row in (late, refused, waiting):
        row.check(places)


# --- Google's libraries --------------------------------------------------------------------


def raise_(error: BaseException) -> None:
    raise error


def from_status(status: int) -> Callable[[Places], None]:
    return lambda at: raise_(google_exceptions.from_http_status(status, "?"))


def from_rpc(port: int, code: str) -> None:
    try:
        call_rpc(port, code)
    except grpc.RpcError as error:
        raise google_exceptions.from_grpc_error(error) from error


def retry_until_late(places: Places) -> None:
    again = google_retry.Retry(initial=0.01, maximum=0.01, timeout=0.05)
    again(lambda: raise_(google_exceptions.ServiceUnavailable("?")))()


def refresh(url: str) -> None:
    user = credentials.Credentials(
        None, refresh_token="r", token_uri=url, client_id="c", client_secret="s"
    )
    user.refresh(Request())


def no_account(places: Places) -> None:
    service_account.Credentials.from_service_account_info({"type": "service_account"})


GOOGLE_CORE = "google.api_core.exceptions."
AUTH = "google.auth.exceptions."
GOOGLE = [
    Row("google: bad request", from_status(400), f"{GOOGLE_CORE}BadRequest",
        l1("http_4xx_matcher", 400)),
    Row("google: forbidden", from_status(403), f"{GOOGLE_CORE}Forbidden",
        l2("http_4xx_matcher", 403)),
    Row("google: too many requests", from_status(429), f"{GOOGLE_CORE}TooManyRequests",
        l3("http_4xx_matcher", SAFE, 429)),
    Row("google: unavailable", from_status(503), f"{GOOGLE_CORE}ServiceUnavailable",
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("google: its own retries used up", retry_until_late, f"{GOOGLE_CORE}RetryError",
        l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("google: refresh refused",
        lambda at: refresh(at.http(400, {"error": "invalid_grant"})), f"{AUTH}RefreshError",
        l2("credentials_matcher")),
    Row("google: nobody to refresh at", lambda at: refresh(at.refused), f"{AUTH}TransportError",
        l3("connection_refused_matcher", SAFE)),
    Row("google: half of an account", no_account, f"{AUTH}MalformedError",
        l2("credentials_matcher")),
]  # fmt: skip


@each(GOOGLE)
def test_hc_19_exceptions_of_google(row: Row, places: Places) -> None:
    row.check(places)


def test_hc_19_a_code_of_grpc_inside_googles_exception(grpc_port: int, places: Places) -> None:
    for code, kind, verdict in [
        ("RESOURCE_EXHAUSTED", "ResourceExhausted", l3("http_4xx_matcher", SAFE, 429)),
        ("UNAUTHENTICATED", "Unauthenticated", l2("http_4xx_matcher", 401)),
        ("DEADLINE_EXCEEDED", "DeadlineExceeded", l3("http_5xx_matcher", AMBIGUOUS, 504)),
    ]:
        Row(
            code, lambda at, code=code: from_rpc(grpc_port, code), f"{GOOGLE_CORE}{kind}", verdict
        ).check(places)
