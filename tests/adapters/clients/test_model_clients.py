"""Exceptions that the clients of model providers really raise, and all that is said of them."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from collections.abc import Callable, Mapping
from typing import Any

import anthropic
import openai
import pydantic
from google import genai
from google.genai import types
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
from tests.instrumentation.classification.places import Places, patience_for, without_names

from fuseboard.conventions import Origin

AFTER = {"retry-after": "7"}
MILLISECONDS = {"retry-after-ms": "250"}


class City(pydantic.BaseModel):
    name: str


def of_openai(code: str | None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": "?", "type": kind, "param": None, "code": code}}


def of_anthropic(kind: str) -> Any:
    return {"type": "error", "error": {"type": kind, "message": "?"}, "request_id": "r"}


def of_google(code: int, status: str, *details: Any) -> Any:
    return {"error": {"code": code, "message": "?", "status": status, "details": list(details)}}


def ask_openai(url: str, **options: Any) -> Any:
    with openai.OpenAI(
        base_url=url, api_key="k", max_retries=0, timeout=patience_for(url)
    ) as client:
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "?"}], **options
        )
        return list(answer) if "stream" in options else answer


def ask_openai_async(url: str) -> Any:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            return await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}]
            )

    return asyncio.run(ask())


def parse_openai(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        completions: Any = client.chat.completions
        if not hasattr(completions, "parse"):  # as it was called in 1.x
            completions = client.beta.chat.completions
        completions.parse(
            model="m", messages=[{"role": "user", "content": "?"}], response_format=City
        )


def ended_by(reason: str) -> Any:
    message = {"role": "assistant", "content": '{"name": "Os', "refusal": None}
    choice = {"index": 0, "finish_reason": reason, "message": message, "logprobs": None}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]
    }  # fmt: skip


def ask_anthropic(url: str, **options: Any) -> Any:
    with anthropic.Anthropic(
        base_url=url, api_key="k", max_retries=0, timeout=patience_for(url)
    ) as client:
        answer = client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}], **options
        )
        return list(answer) if "stream" in options else answer


def openai_says(at: Places, status: int, code: str | None) -> Any:
    return ask_openai(at.http(status, of_openai(code)))


def anthropic_says(
    at: Places, status: int, kind: str, headers: Mapping[str, str] | None = None
) -> Any:
    return ask_anthropic(at.http(status, of_anthropic(kind), headers))


def google_says(at: Places, code: int, status: str, *details: Any) -> Any:
    return ask_google(at.http(code, of_google(code, status, *details)))


def events(*parts: tuple[str, str]) -> str:
    return "".join(f"event: {name}\ndata: {data}\n\n" for name, data in parts)


def ask_google(url: str) -> Any:
    options = types.HttpOptions(base_url=url, timeout=int(patience_for(url) * 1000))
    client = genai.Client(api_key="k", http_options=options)
    return client.models.generate_content(model="m", contents="?")


def with_unknown_name(ask: Callable[[str], Any], code: int = socket.EAI_NONAME) -> None:
    with without_names(code):
        ask("http://models.invalid")


# Newer releases speak through httpx's successor where that is installed.
HTTPX = "httpx2" if importlib.util.find_spec("httpx2") else "httpx"
OVERLOADED = '{"type":"error","error":{"type":"overloaded_error","message":"?"}}'
STREAM = {"content-type": "text/event-stream"}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31.5s"}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}

OPENAI = [
    Row("openai: 400", lambda at: openai_says(at, 400, None),
        "openai.BadRequestError", l1("http_4xx_matcher", 400)),
    Row("openai: context too long",
        lambda at: openai_says(at, 400, "context_length_exceeded"),
        "openai.BadRequestError", l1("http_4xx_matcher", 400)),
    Row("openai: refused by the content policy",
        lambda at: openai_says(at, 400, "content_policy_violation"),
        "openai.BadRequestError", l1("http_4xx_matcher", 400)),
    Row("openai: billing limit as 400",
        lambda at: openai_says(at, 400, "billing_hard_limit_reached"),
        "openai.BadRequestError", l2("http_quota_matcher", 400)),
    Row("openai: wrong key", lambda at: openai_says(at, 401, "invalid_api_key"),
        "openai.AuthenticationError", l2("http_4xx_matcher", 401)),
    Row("openai: 403", lambda at: openai_says(at, 403, None),
        "openai.PermissionDeniedError", l2("http_4xx_matcher", 403)),
    Row("openai: no such model", lambda at: openai_says(at, 404, "model_not_found"),
        "openai.NotFoundError", l1("http_4xx_matcher", 404)),
    Row("openai: 409", lambda at: openai_says(at, 409, None),
        "openai.ConflictError", l1("http_4xx_matcher", 409)),
    Row("openai: 422", lambda at: openai_says(at, 422, None),
        "openai.UnprocessableEntityError", l1("http_4xx_matcher", 422)),
    Row("openai: rate limit",
        lambda at: ask_openai(at.http(429, of_openai("rate_limit_exceeded", "tokens"), AFTER)),
        "openai.RateLimitError", l3("http_4xx_matcher", SAFE, 429, 7.0)),
    Row("openai: rate limit in milliseconds",
        lambda at: ask_openai(at.http(429, of_openai("rate_limit_exceeded"), MILLISECONDS)),
        "openai.RateLimitError", l3("http_4xx_matcher", SAFE, 429, 0.25)),
    Row("openai: quota used up", lambda at: ask_openai(
            at.http(429, of_openai("insufficient_quota", "insufficient_quota"))),
        "openai.RateLimitError", l2("http_quota_matcher", 429)),
    Row("openai: 500", lambda at: ask_openai(at.http(500, of_openai(None, "server_error"))),
        "openai.InternalServerError", l3("http_5xx_matcher", AMBIGUOUS, 500)),
    Row("openai, async: 503", lambda at: ask_openai_async(at.http(503, "overloaded", AFTER)),
        "openai.InternalServerError", l3("http_5xx_matcher", SAFE, 503, 7.0)),
    Row("openai: refused", lambda at: ask_openai(at.refused), "openai.APIConnectionError",
        l3("connection_refused_matcher", SAFE)),
    Row("openai, async: refused", lambda at: ask_openai_async(at.refused),
        "openai.APIConnectionError", l3("connection_refused_matcher", SAFE)),
    Row("openai: name unknown", lambda at: with_unknown_name(ask_openai),
        "openai.APIConnectionError", l4("dns_unknown_host_matcher")),
    Row("openai: no answer of the name server",
        lambda at: with_unknown_name(ask_openai, socket.EAI_AGAIN),
        "openai.APIConnectionError", l3("dns_temporary_matcher", SAFE)),
    Row("openai: untrusted certificate", lambda at: ask_openai(at.untrusted),
        "openai.APIConnectionError", l4("certificate_matcher")),
    Row("openai: cut", lambda at: ask_openai(at.cut), "openai.APIConnectionError",
        l3("connection_reset_matcher", AMBIGUOUS)),
    Row("openai: time-out", lambda at: ask_openai(at.hanging), "openai.APITimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("openai: error within a stream", lambda at: ask_openai(at.http(
            200, 'data: {"error": {"message": "?", "type": "server_error", "code": null}}\n\n',
            STREAM), stream=True),
        "openai.APIError", l3("error_slug_matcher", AMBIGUOUS)),
    Row("openai: rate limit within a stream", lambda at: ask_openai(at.http(
            200, 'data: {"error": {"message": "?", "code": "rate_limit_exceeded"}}\n\n', STREAM),
            stream=True),
        "openai.APIError", l3("error_slug_matcher", SAFE)),
    Row("openai: cut short by its length",
        lambda at: parse_openai(at.http(200, ended_by("length"))),
        "openai.LengthFinishReasonError", l5("model_output_matcher", Origin.MODEL)),
    Row("openai: cut short by the content filter",
        lambda at: parse_openai(at.http(200, ended_by("content_filter"))),
        "openai.ContentFilterFinishReasonError", l5("model_output_matcher", Origin.MODEL)),
]  # fmt: skip

ANTHROPIC = [
    Row("anthropic: 400", lambda at: anthropic_says(at, 400, "invalid_request_error"),
        "anthropic.BadRequestError", l1("http_4xx_matcher", 400)),
    Row("anthropic: wrong key", lambda at: anthropic_says(at, 401, "authentication_error"),
        "anthropic.AuthenticationError", l2("http_4xx_matcher", 401)),
    Row("anthropic: billing", lambda at: anthropic_says(at, 402, "billing_error"),
        "anthropic.PaymentRequiredError | anthropic.APIStatusError", l2("http_4xx_matcher", 402)),
    Row("anthropic: 403", lambda at: anthropic_says(at, 403, "permission_error"),
        "anthropic.PermissionDeniedError", l2("http_4xx_matcher", 403)),
    Row("anthropic: no such model", lambda at: anthropic_says(at, 404, "not_found_error"),
        "anthropic.NotFoundError", l1("http_4xx_matcher", 404)),
    Row("anthropic: too large", lambda at: anthropic_says(at, 413, "request_too_large"),
        "anthropic.ContentTooLargeError | anthropic.APIStatusError", l1("http_4xx_matcher", 413)),
    Row("anthropic: rate limit", lambda at: anthropic_says(at, 429, "rate_limit_error", AFTER),
        "anthropic.RateLimitError", l3("http_4xx_matcher", SAFE, 429, 7.0)),
    Row("anthropic: 500", lambda at: anthropic_says(at, 500, "api_error"),
        "anthropic.InternalServerError", l3("http_5xx_matcher", AMBIGUOUS, 500)),
    Row("anthropic: overloaded", lambda at: anthropic_says(at, 529, "overloaded_error"),
        "anthropic.OverloadedError | anthropic.InternalServerError",
        l3("http_5xx_matcher", AMBIGUOUS, 529)),
    Row("anthropic: overloaded, with seconds",
        lambda at: anthropic_says(at, 529, "overloaded_error", AFTER),
        "anthropic.OverloadedError | anthropic.InternalServerError",
        l3("http_5xx_matcher", SAFE, 529, 7.0)),
    Row("anthropic: overloaded within a stream",
        lambda at: ask_anthropic(at.http(200, events(("error", OVERLOADED)), STREAM), stream=True),
        "anthropic.APIStatusError", l3("error_slug_matcher", AMBIGUOUS)),
    Row("anthropic: refused", lambda at: ask_anthropic(at.refused),
        "anthropic.APIConnectionError", l3("connection_refused_matcher", SAFE)),
    Row("anthropic: name unknown", lambda at: with_unknown_name(ask_anthropic),
        "anthropic.APIConnectionError", l4("dns_unknown_host_matcher")),
    Row("anthropic: cut", lambda at: ask_anthropic(at.cut), "anthropic.APIConnectionError",
        l3("connection_reset_matcher", AMBIGUOUS)),
    Row("anthropic: time-out", lambda at: ask_anthropic(at.hanging), "anthropic.APITimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
]  # fmt: skip

GOOGLE = [
    Row("google: 400", lambda at: google_says(at, 400, "INVALID_ARGUMENT"),
        "google.genai.errors.ClientError", l1("http_4xx_matcher", 400)),
    Row("google: wrong key as 400",
        lambda at: google_says(at, 400, "INVALID_ARGUMENT", BAD_KEY),
        "google.genai.errors.ClientError", l2("error_slug_matcher", 400)),
    Row("google: 403", lambda at: google_says(at, 403, "PERMISSION_DENIED"),
        "google.genai.errors.ClientError", l2("http_4xx_matcher", 403)),
    Row("google: no such model", lambda at: google_says(at, 404, "NOT_FOUND"),
        "google.genai.errors.ClientError", l1("http_4xx_matcher", 404)),
    Row("google: rate limit",
        lambda at: google_says(at, 429, "RESOURCE_EXHAUSTED", RETRY_INFO),
        "google.genai.errors.ClientError", l3("http_4xx_matcher", SAFE, 429, 31.5)),
    Row("google: 500", lambda at: google_says(at, 500, "INTERNAL"),
        "google.genai.errors.ServerError", l3("http_5xx_matcher", AMBIGUOUS, 500)),
    Row("google: 503", lambda at: google_says(at, 503, "UNAVAILABLE"),
        "google.genai.errors.ServerError", l3("http_5xx_matcher", AMBIGUOUS, 503)),
    Row("google: refused", lambda at: ask_google(at.refused), f"{HTTPX}.ConnectError",
        l3("connection_refused_matcher", SAFE)),
    Row("google: time-out", lambda at: ask_google(at.hanging), f"{HTTPX}.ReadTimeout",
        l3("timeout_matcher", AMBIGUOUS)),
]  # fmt: skip


@each([*OPENAI, *ANTHROPIC, *GOOGLE])
def test_hc_19_exceptions_of_model_clients(row: Row, places: Places) -> None:
    row.check(places)
