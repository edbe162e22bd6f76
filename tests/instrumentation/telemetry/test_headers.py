"""Which headers go where: the token of one backend must not reach another."""

from __future__ import annotations

import logging
from typing import Any

import handmade_calls as handmade
import pytest

from fuseboard import ConfigurationError, setup
from fuseboard.telemetry.headers import headers_for

OURS = "http://127.0.0.1:4318"
THEIRS = "https://otlp.vendor.example"
SECRET = (("authorization", "Bearer t0ken"),)


@pytest.fixture(autouse=True)
def _their_token(clean_setup: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ken")


def test_a_chosen_endpoint_does_not_get_the_token_of_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fuseboard")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", THEIRS)
    assert headers_for(OURS, None, is_chosen=True) == ()
    (line,) = caplog.messages
    assert "FUSEBOARD_HEADERS" in line
    assert "t0ken" not in line


def test_a_chosen_endpoint_gets_none_either_where_no_server_is_named() -> None:
    assert headers_for(OURS, None, is_chosen=True) == ()


@pytest.mark.parametrize(
    ("variable", "named", "chosen", "is_sent"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a.example", "https://a.example:443/x", True),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a.example:80/v1", "http://A.example", True),
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://a.example:1", "http://a.example:1", True),
        # The same host in the clear, at another port or under a longer name is not the same.
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a.example", "http://a.example", False),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a.example:1", "http://a.example:2", False),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a.example", "http://a.example.evil", False),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[nonsense", "http://a.example", False),
    ],
)
def test_the_same_server_gets_the_token_however_it_was_chosen(
    monkeypatch: pytest.MonkeyPatch, variable: str, named: str, chosen: str, is_sent: bool
) -> None:
    monkeypatch.setenv(variable, named)
    assert headers_for(chosen, None, is_chosen=True) == (SECRET if is_sent else ())


def test_where_opentelemetrys_variables_lead_their_headers_go() -> None:
    assert headers_for(THEIRS, None, is_chosen=False) == SECRET


def test_fuseboards_own_variable_and_the_argument_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FUSEBOARD_HEADERS", "authorization=Bearer%20mine,x-team=sre")
    mine = (("authorization", "Bearer mine"), ("x-team", "sre"))
    assert headers_for(OURS, None, is_chosen=True) == mine
    assert headers_for(THEIRS, None, is_chosen=False) == mine
    assert headers_for(OURS, {}, is_chosen=True) == ()
    assert headers_for(OURS, {"a": "b"}, is_chosen=True) == (("a", "b"),)


def test_a_header_of_fuseboards_variable_that_cannot_be_sent_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FUSEBOARD_HEADERS", "authorization=secret%0Ax")
    with pytest.raises(ConfigurationError, match=r"FUSEBOARD_HEADERS.*'authorization'") as caught:
        setup.init("x")
    assert "secret" not in str(caught.value)


def test_the_token_stays_at_home_all_the_way(start: Any, collector: Any) -> None:
    start()
    handmade.succeed()
    assert setup.shutdown(20.0)
    assert collector.headers
    assert not [sent for sent in collector.headers if "t0ken" in str(sent)]


@pytest.mark.parametrize(
    "written",
    [
        "Authorization: Bearer t0ken",
        "Authorization: Basic t0ken=",
        "x-team=sre,Bearer t0ken",
        "t0ken",
    ],
    ids=["as curl takes it", "the same with base64", "a comma not encoded", "no name"],
)
def test_headers_that_are_not_written_as_pairs_are_refused_without_showing_the_secret(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("FUSEBOARD_HEADERS", written)
    with pytest.raises(ConfigurationError, match=r"FUSEBOARD_HEADERS.*name=value") as caught:
        setup.init("x")
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("name", ["Authorization:", "x team", "x\tteam", ""])
def test_a_name_that_http_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="headers="):
        headers_for(OURS, {name: "sre"}, is_chosen=True)


def test_what_is_wrong_in_opentelemetrys_variable_is_left_out_as_its_sdk_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Basic t0ken=,x-team=sre")
    assert headers_for(THEIRS, None, is_chosen=False) == (("x-team", "sre"),)
