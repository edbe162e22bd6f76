"""The choke point: what it masks, what it leaves readable, and that it never raises."""

from __future__ import annotations

import json
import time
from typing import Any

import handmade_calls as handmade
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseboard import setup
from fuseboard.conventions import BreakerState, ErrorClass, Outcome
from fuseboard.record import BreakerTransition, ToolInfo
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.capture import MAX_CAPTURED, captured
from fuseboard.telemetry.redaction import name, redact

SECRET = "CANARYx7Qz93LmA4kPq"


@pytest.mark.parametrize(
    "text",
    [
        f"GET https://user:{SECRET}@api.example.com/v1?key={SECRET}#{SECRET} failed",
        f"postgresql+psycopg://app:{SECRET}@db:5432/prod is away",
        f"redis://:{SECRET}@cache:6379/0",
        f"https://example.com/path?token={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"authorization=Basic {SECRET}==",
        f"headers: {{'Authorization': 'Bearer {SECRET}', 'Accept': '*/*'}}",
        f'{{"api_key": "{SECRET}", "q": "x"}}',
        f"{{'password': '{SECRET}'}}",
        f"password={SECRET}",
        f"PASSWORD = '{SECRET} with blanks'",
        f"login failed: passwd:{SECRET}",
        f"client_secret={SECRET}&grant_type=x",
        f"X-Api-Key: {SECRET}",
        f"access_token={SECRET}",
        f"refresh-token: {SECRET}",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"Set-Cookie: session={SECRET}",
        f"Incorrect API key provided: sk-{SECRET}",
        f"sk-proj-{SECRET}_abc rejected",
        f"key sk-ant-api03-{SECRET}",
        f"Field required [type=missing, input_value={{'city': '{SECRET}'}}, input_type=dict]",
        f"[input_value='{SECRET}', input_type=str] [input_value='{SECRET}', input_type=int]",
        f"cut off [type=missing, input_value={{'city': '{SECRET}",
        f"ghp_{SECRET}abcd",
        f"xoxb-123-{SECRET}",
        f"AIza{SECRET}abcdefgh",
        f"eyJhbGciOi.{SECRET}.{SECRET}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f'body: {{\\"token\\": \\"{SECRET}\\"}}',
        f"bearer {SECRET}",
    ],
)
def test_credentials_are_masked(text: str) -> None:
    assert SECRET not in redact(text)
    assert SECRET not in name(text)


@pytest.mark.parametrize(
    "text",
    [
        "connect to 10.0.0.1:443 timed out after 3 s",
        "KeyError: 'price'",
        "HTTP 503 from https://api.example.com/v1/search",
        "the tokenizer failed at position 7",
        "2 validation errors for Query: field required",
        "path C:\\Users\\x: not found",
        "no such hotel",
        "",
    ],
)
def test_ordinary_messages_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_the_readable_part_of_a_url_stays() -> None:
    text = redact("GET https://u:p@api.example.com:8443/v1/items?page=2 -> 503")
    assert text == "GET https://api.example.com:8443/v1/items -> 503"


def test_long_text_is_cut_on_a_character() -> None:
    text = redact("🤝" * 2000)
    assert len(text) == 512
    assert text == "🤝" * 511 + "…"
    text.encode()


def test_hc_11_lone_surrogates_become_the_replacement_character() -> None:
    assert redact("half an emoji \ud83e here") == "half an emoji \ufffd here"
    assert redact("\udc00") == "\ufffd"
    assert redact("end \ud83e") == "end \ufffd"
    assert redact("a pair \ud83e\udd1d") == "a pair 🤝"
    assert name("tool\ud83e") == "tool\ufffd"


class HostileText(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise RuntimeError("no")

    def isascii(self) -> bool:
        raise RuntimeError("no")


def test_it_never_raises() -> None:
    assert redact(HostileText("x")) == "<unreadable text>"
    assert redact(None) == "<unreadable text>"  # type: ignore[arg-type]
    assert name(7) == "<unreadable text>"  # type: ignore[arg-type]


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_comes_out_bounded_and_encodable(text: str) -> None:
    for result in (redact(text), name(text)):
        result.encode()
        assert len(result) <= 512


@pytest.mark.parametrize("shape", ["=", "a=", "://", "token ", "-----BEGIN PRIVATE KEY-----", "\\"])
def test_no_pattern_takes_long_over_hostile_text(shape: str) -> None:
    import time

    began = time.perf_counter()
    redact(shape * (1_000_000 // len(shape)))
    assert time.perf_counter() - began < 1.0


# --- Capture --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "piece",
    ["é", "日本", "x", "9", "-", "a-", "a.", "_", "ab_", " ", "password", "password ", "token_",
     "secret key ", "password=", "password:'", 'password=\\"', "eyJaaaaaa.", "http://", "a:b@",
     "Bearer ", "sk-", "-----BEGIN A PRIVATE KEY-----", "\\", "'", "=>"],
)  # fmt: skip
def test_no_text_keeps_the_tool_waiting(piece: str) -> None:
    text = (piece * 5000)[:5000]
    began = time.perf_counter()
    redact(text)
    assert time.perf_counter() - began < 1.0  # a few ms, as a rule


def test_captured_values_are_strict_json_without_secrets() -> None:
    value = {
        "q": "hotel",
        "password": SECRET,
        "headers": [{"Authorization": f"Bearer {SECRET}", "X-API-Key": SECRET}],
        "url": f"https://u:{SECRET}@x/?k={SECRET}",
        "nan": float("nan"),
        "\ud83e": "\ud83e",
    }
    text = captured(value)
    assert SECRET not in text
    read = json.loads(text, parse_constant=pytest.fail)
    assert read["q"] == "hotel"
    assert read["url"] == "https://x/"
    assert read["\ufffd"] == "\ufffd"


def test_captured_values_are_bounded() -> None:
    text = captured({"rows": [{"n": n, "text": "y" * 100} for n in range(10_000)]})
    assert len(text) <= MAX_CAPTURED
    assert json.loads(text)["$type"] == "more"


def test_arguments_and_results_are_recorded_only_when_asked_for(start: Any, collector: Any) -> None:
    start()
    handmade.end(handmade.start(arguments={"q": "Oslo"}), result={"n": 1})
    assert setup.flush(20.0)
    setup.shutdown(5.0)
    start(record_arguments=True, record_results=True)
    assert RUNTIME.record_arguments
    assert RUNTIME.record_results
    handmade.end(handmade.start(arguments={"q": "Oslo", "token": SECRET}), result={"n": 1})
    assert setup.flush(20.0)
    without, with_both = (
        {a.key: a.value.string_value for a in span.attributes} for span in collector.spans()
    )
    assert "gen_ai.tool.call.arguments" not in without
    assert "gen_ai.tool.call.result" not in without
    assert json.loads(with_both["gen_ai.tool.call.arguments"]) == {"q": "Oslo", "token": "***"}
    assert json.loads(with_both["gen_ai.tool.call.result"]) == {"n": 1}


# --- The canary -----------------------------------------------------------------------------
def test_hc_12_a_secret_in_any_text_reaches_no_span_log_or_metric(
    start: Any, collector: Any, caplog: pytest.LogCaptureFixture
) -> None:
    start()
    message = f"401 for https://u:{SECRET}@x/?k={SECRET}, password={SECRET}, Bearer {SECRET}"
    RUNTIME.register(ToolInfo("search"))
    call = handmade.start(
        upstream=f"https://u:{SECRET}@api.example.com/?key={SECRET}",
        session=f"token={SECRET}",
        agent=f"Bearer {SECRET}",
        arguments={"password": SECRET},
    )
    for _ in range(3):
        handmade.attempt(call, handmade.fault(ErrorClass.L2_ACCESS, message))
    handmade.end(
        call,
        outcome=Outcome.DEGRADED,
        fault=handmade.fault(ErrorClass.L2_ACCESS, message),
        fallback_tool=f"api_key={SECRET}",
    )
    transition = BreakerTransition(
        name=f"search/password={SECRET}",
        tool="search",
        region=f"token={SECRET}",
        upstream=f"https://u:{SECRET}@h",
        from_state=BreakerState.CLOSED,
        to_state=BreakerState.OPEN,
        reason=f"secret={SECRET}",
        failure_ratio=1.0,
        calls=3,
        failures=3,
        error_class=ErrorClass.L2_ACCESS,
        at_unix_ns=call.started_unix_ns,
        call=call,
    )
    RUNTIME.telemetry.breaker_changed(transition)
    handmade.fail(message=message, session=f"token={SECRET}")
    assert setup.flush(20.0)
    assert len(collector.spans()) == 6
    assert collector.logs("fuseboard.breaker.transition")
    for _, body in collector.bodies:
        assert SECRET.encode() not in body
    assert SECRET.encode() not in setup.metrics_text()[0]
    assert SECRET.encode() not in setup.metrics_text("application/openmetrics-text")[0]
    assert SECRET not in caplog.text


def test_what_pydantic_says_of_an_input_stays_readable_without_the_input() -> None:
    text = "a\n  Input should be an integer [type=int_parsing, input_value='x', input_type=str]\nb"
    assert redact(text) == "a\n  Input should be an integer [type=int_parsing, input_type=str]\nb"
