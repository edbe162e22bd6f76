"""A quota that is used up is no rate limit, and only the body of the answer tells them apart."""

from __future__ import annotations

import io
import json
import types
import urllib.error
from typing import Any

import httpx
import pytest
import requests

import fuseboard
from fuseboard import ErrorClass, Policy, Retry
from fuseboard.classification import judge_exception, judge_result
from fuseboard.classification.bodies import MAX_BODY
from fuseboard.record import Fault, Verdict

L1, L2, L3 = ErrorClass.L1_INPUT, ErrorClass.L2_ACCESS, ErrorClass.L3_TRANSIENT
REQUEST = httpx.Request("POST", "http://api.test/v1/chat")

QUOTA = {"error": {"code": "insufficient_quota", "message": "check your plan", "param": None}}
LIMIT = {"error": {"code": "rate_limit_exceeded", "message": "slow down"}}

ANSWERS: list[tuple[int, Any, ErrorClass]] = [
    (429, QUOTA, L2),
    (429, {"error": {"type": "insufficient_quota", "code": None}}, L2),
    (429, {"error": {"type": "insufficient_quota", "code": "rate_limit_exceeded"}}, L2),
    (429, {"error": {"message": "no"}, "code": "QUOTA_EXCEEDED"}, L2),
    (429, {"error": "insufficient_quota"}, L2),
    (429, {"code": "insufficient_credits"}, L2),
    (429, {"detail": {"code": "billing_not_active"}}, L2),
    (400, {"error": {"code": "billing_hard_limit_reached"}}, L2),
    (429, LIMIT, L3),
    (429, {}, L3),
    (429, {"error": {"message": "insufficient_quota"}}, L3),  # words mean nothing
    (429, [QUOTA], L3),
    (429, "insufficient_quota", L3),
    (429, None, L3),
    (400, {"error": {"code": "context_length_exceeded"}}, L1),
    (500, QUOTA, L3),
    (403, QUOTA, L2),
]


def judge(error: BaseException) -> Verdict:
    fault = judge_exception(error, 0.0)
    assert isinstance(fault, Fault)
    return fault.verdict


def httpx_error(response: httpx.Response) -> httpx.HTTPStatusError:
    with pytest.raises(httpx.HTTPStatusError) as caught:
        response.raise_for_status()
    return caught.value


def requests_response(status: int, raw: Any) -> requests.Response:
    response = requests.Response()
    response.status_code, response.raw = status, raw
    return response


@pytest.mark.parametrize(("status", "answer", "error_class"), ANSWERS)
def test_httpx(status: int, answer: Any, error_class: ErrorClass) -> None:
    response = httpx.Response(status, content=json.dumps(answer), request=REQUEST)
    verdict = judge(httpx_error(response))
    assert (verdict.error_class, verdict.http_status) == (error_class, status)
    assert verdict.retryable is (error_class is L3)
    assert response.json() == answer, "the caller still has it"
    found = judge_result(response, 0.0)
    assert found is not None
    assert found.verdict.error_class is error_class


@pytest.mark.parametrize(("status", "answer", "error_class"), ANSWERS)
def test_requests(status: int, answer: Any, error_class: ErrorClass) -> None:
    response = requests_response(status, io.BytesIO(json.dumps(answer).encode()))
    assert response.content, "read, as requests does unless it streams"
    assert judge(requests.HTTPError(response=response)).error_class is error_class


@pytest.mark.parametrize("kind", [bytes, str])
def test_any_client_that_keeps_a_body(kind: type) -> None:
    text = json.dumps(QUOTA)
    body = text.encode() if kind is bytes else text
    for name in ("_body", "content", "text"):
        error = Exception()
        error.response = types.SimpleNamespace(status_code=429, **{name: body})  # type: ignore[attr-defined]
        assert judge(error).error_class is L2, name
    error = Exception()
    error.status, error.body = 429, body  # type: ignore[attr-defined]
    assert judge(error).error_class is L2


class Unreadable(io.RawIOBase):
    """A network that must not be touched."""

    def read(self, *given: Any) -> bytes:
        raise AssertionError("the body was read from the network")


class LazyResponse:
    """Reads when it is asked for its body, as ``requests.Response`` does."""

    status_code = 429

    @property
    def content(self) -> bytes:
        raise AssertionError("the body was asked for")

    text = body = _content = _body = content

    def json(self) -> Any:
        raise AssertionError("the body was asked for")

    read = json


def test_a_body_that_was_not_read_stays_unread() -> None:
    streamed = requests_response(429, Unreadable())
    assert judge(requests.HTTPError(response=streamed)).error_class is L3
    lazy = Exception()
    lazy.response = LazyResponse()  # type: ignore[attr-defined]
    assert judge(lazy).error_class is L3

    def chunks() -> Any:
        yield json.dumps(QUOTA).encode()

    response = httpx.Response(429, content=chunks(), request=REQUEST)
    assert judge(httpx_error(response)).error_class is L3
    assert json.loads(response.read()) == QUOTA, "the caller still gets it"
    source = io.BytesIO(json.dumps(QUOTA).encode())
    error = urllib.error.HTTPError("http://api.test", 429, "no", None, source)  # type: ignore[arg-type]
    assert judge(error).error_class is L3
    assert json.loads(error.read()) == QUOTA


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe\x00",
        b"[" * MAX_BODY,
        b'{"error": {"code": ' + b"9" * 9000 + b"}}",
        b"<html>Too many requests</html>",
        json.dumps({**QUOTA, "padding": "x" * MAX_BODY}).encode(),
        b"",
    ],
    ids=["no text", "deep", "huge number", "page", "too long", "empty"],
)
def test_a_body_that_is_no_answer_is_a_rate_limit(body: bytes) -> None:
    response = httpx.Response(429, content=body, request=REQUEST)
    assert judge(httpx_error(response)).error_class is L3


def test_an_exhausted_quota_is_not_retried(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=0), effects="none"))
    def complete() -> None:
        httpx.Response(429, json=QUOTA, request=REQUEST).raise_for_status()

    with pytest.raises(httpx.HTTPStatusError):
        complete()
    assert len(telemetry.last.attempts) == 1
    assert telemetry.last.fault.verdict.classifier_id == "http_quota_matcher"
