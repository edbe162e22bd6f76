"""``init``: precedence, checks, idempotence."""

from __future__ import annotations

import dataclasses
import inspect
import socket
import threading
from collections.abc import Iterator
from typing import Any

import handmade_calls as handmade
import pytest
from fake_collector import as_dict
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry, Gauge

from fuseboard import setup
from fuseboard.errors import ConfigurationError
from fuseboard.runtime import RUNTIME, NullTelemetry
from fuseboard.telemetry.settings import _PUBLIC_NAMES, Settings


def resource_of(collector: Any) -> dict[str, Any]:
    handmade.succeed()
    assert setup.flush(20.0)
    return as_dict(collector.resource_spans()[-1].resource.attributes)


@pytest.mark.parametrize(
    ("argument", "environment", "expected"),
    [
        (None, {}, "unknown_service"),
        (None, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=resource"}, "resource"),
        (None, {"OTEL_SERVICE_NAME": "otel", "FUSEBOARD_SERVICE": ""}, "otel"),
        (None, {"OTEL_SERVICE_NAME": "otel", "FUSEBOARD_SERVICE": "ours"}, "ours"),
        ("given", {"OTEL_SERVICE_NAME": "otel", "FUSEBOARD_SERVICE": "ours"}, "given"),
    ],
)
def test_precedence_of_the_service_name(
    clean_setup: None,
    collector: Any,
    registry: CollectorRegistry,
    monkeypatch: pytest.MonkeyPatch,
    argument: str | None,
    environment: dict[str, str],
    expected: str,
) -> None:
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    setup.init(argument, endpoint=collector.url, registry=registry)
    assert resource_of(collector)["service.name"].startswith(expected)


def test_precedence_of_the_endpoint(
    clean_setup: None,
    collector: Any,
    registry: CollectorRegistry,
    monkeypatch: pytest.MonkeyPatch,
    refusing_endpoint: str,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing_endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{refusing_endpoint}/v1/traces")
    monkeypatch.setenv("FUSEBOARD_ENDPOINT", collector.url + "/")
    monkeypatch.setenv("FUSEBOARD_HEADERS", "authorization=Bearer%20abc,x-team=sre")
    setup.init("x", registry=registry)
    handmade.succeed()
    assert setup.flush(20.0)
    assert {path for path, _ in collector.bodies} == {"/v1/traces", "/v1/logs"}
    sent = {key.lower(): value for key, value in collector.headers[0].items()}
    assert sent["authorization"] == "Bearer abc"
    assert sent["x-team"] == "sre"


def test_opentelemetry_variables_are_used_where_nothing_else_is_said(
    clean_setup: None,
    collector: Any,
    registry: CollectorRegistry,
    monkeypatch: pytest.MonkeyPatch,
    refusing_endpoint: str,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing_endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/custom")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", f"{collector.url}/v1/logs")
    setup.init("x", registry=registry)
    handmade.succeed()
    assert setup.flush(20.0)
    assert {path for path, _ in collector.bodies} == {"/custom", "/v1/logs"}


def test_the_resource_names_region_environment_and_process(start: Any, collector: Any) -> None:
    start(region="eu-west", environment="staging")
    resource = resource_of(collector)
    assert resource["cloud.region"] == RUNTIME.region == "eu-west"
    assert resource["deployment.environment.name"] == "staging"
    assert len(resource["service.instance.id"]) == 36
    assert resource["fuseboard.version"]


@pytest.mark.parametrize(
    ("argument", "value", "legal"),
    [
        ("service", "", "1 to 256"),
        ("service", 7, "1 to 256"),
        ("region", "x" * 257, "1 to 256"),
        ("environment", "  ", "1 to 256"),
        ("endpoint", "localhost:4318", "http or https"),
        ("endpoint", "ftp://host", "http or https"),
        ("endpoint", "http://", "http or https"),
        ("endpoint", "http://host:99999", "http or https"),
        ("endpoint", "http://no..host:4318", "http or https"),
        ("endpoint", "", "http or https"),
        ("endpoint", 4318, "http or https"),
        ("regions", "eu-west", "list"),
        ("regions", [1], "list"),
        ("regions", [""], "list"),
        ("regions", [f"r{n}" for n in range(51)], "at most 50"),
        ("regions", 3, "list"),
        ("headers", "Authorization: x", "mapping"),
        ("headers", {"a": 1}, "mapping"),
        ("headers", {"a": "x\r\nEvil: y"}, "line breaks"),
        ("registry", "default", "CollectorRegistry"),
        ("tracer_provider", object(), "TracerProvider"),
        ("metrics_port", -1, "65535"),
        ("metrics_port", "9464", "65535"),
        ("metrics_port", True, "65535"),
        ("record_arguments", "yes", "True or False"),
        ("record_results", 1, "True or False"),
        ("heartbeat_seconds", 0, "seconds from"),
        ("heartbeat_seconds", float("nan"), "seconds from"),
        ("shutdown_timeout", -1, "seconds from 0 to 60"),
        ("shutdown_timeout", 61, "seconds from 0 to 60"),
        ("shutdown_timeout", "5", "seconds from 0 to 60"),
    ],
)
def test_wrong_settings_are_named_with_their_value_and_what_is_legal(
    start: Any, argument: str, value: Any, legal: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        start(**{argument: value}) if argument != "service" else setup.init(value)
    message = str(caught.value)
    assert f"{argument}=" in message
    assert legal in message
    if argument != "headers":
        assert repr(value) in message
    assert isinstance(RUNTIME.telemetry, NullTelemetry)


def test_a_wrong_variable_is_named(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "many")
    with pytest.raises(ConfigurationError, match="OTEL_BSP_MAX_QUEUE_SIZE='many'"):
        start()


def test_secret_headers_are_not_part_of_a_message(start: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        start(headers={"authorization": "Bearer CANARY\n"})
    assert "CANARY" not in str(caught.value)


def test_init_twice_with_equal_settings_does_nothing(start: Any) -> None:
    start(region="eu-west")
    first = RUNTIME.telemetry
    start(region="eu-west")
    assert RUNTIME.telemetry is first


def test_init_twice_with_other_settings_names_them(start: Any) -> None:
    start(region="eu-west")
    with pytest.raises(ConfigurationError, match=r"environment, region.*fuseboard.shutdown\(\)"):
        start(region="us-east", environment="x")


def test_after_shutdown_init_may_choose_anew(start: Any, collector: Any) -> None:
    start(region="eu-west")
    assert setup.shutdown() is True
    handmade.succeed()  # silently not recorded
    assert setup.shutdown() is True
    start(region="us-east")
    assert resource_of(collector)["cloud.region"] == "us-east"
    assert len(collector.spans()) == 1


def test_the_pieces_before_init(clean_setup: None) -> None:
    assert setup.flush() is True
    assert setup.shutdown() is True


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", None, True])
@pytest.mark.parametrize("function", ["flush", "shutdown"])
def test_wrong_timeouts(start: Any, function: str, timeout: Any) -> None:
    start()
    with pytest.raises(ConfigurationError, match=f"{function}: timeout="):
        getattr(setup, function)(timeout)


def test_a_given_provider_is_used_and_its_resource_completed(start: Any, collector: Any) -> None:
    provider = TracerProvider(
        resource=Resource({"service.name": "theirs", "team": "sre"}), shutdown_on_exit=False
    )
    start(tracer_provider=provider, region="eu-west")
    with provider.get_tracer("application").start_as_current_span("not for us"):
        handmade.succeed()
    assert setup.flush(20.0)
    assert [span.name for span in collector.spans()] == ["execute_tool search"]
    resource = as_dict(collector.resource_spans()[0].resource.attributes)
    assert resource["team"] == "sre"
    assert resource["service.name"] == "tests"
    log_resource = as_dict(collector.resource_logs()[0].resource.attributes)
    for key in ("service.name", "service.instance.id", "team", "cloud.region"):
        assert log_resource[key] == resource[key]


def test_shutdown_detaches_from_a_given_provider(start: Any, collector: Any) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    start(tracer_provider=provider)
    setup.shutdown(5.0)
    start(tracer_provider=provider)
    handmade.succeed()
    assert setup.flush(20.0)
    assert len(collector.spans()) == 1


def test_headers_of_the_environment_that_cannot_be_sent_are_refused_without_their_values(
    clean_setup: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=sre,authorization=secret%0Ax")
    with pytest.raises(
        ConfigurationError, match=r"OTEL_EXPORTER_OTLP_HEADERS.*'authorization'"
    ) as e:
        setup.init("x")
    assert "secret" not in str(e.value)


def test_a_password_in_a_wrong_endpoint_is_not_repeated(clean_setup: None) -> None:
    with pytest.raises(ConfigurationError, match="endpoint='htp://host'"):
        setup.init("x", endpoint="htp://user:hunter2@host")


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs/", "/v1/metrics", "/otlp/v1/traces"])
def test_the_url_of_one_signal_is_no_endpoint(
    clean_setup: None, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    words = rf"use the base URL, without /v1/{path.rstrip('/').rpartition('/')[2]}$"
    with pytest.raises(ConfigurationError, match=words):
        setup.init("x", endpoint=f"http://127.0.0.1:4318{path}")
    monkeypatch.setenv("FUSEBOARD_ENDPOINT", f"http://user:hunter2@127.0.0.1:4318{path}")
    with pytest.raises(ConfigurationError, match=words) as caught:
        setup.init("x")
    assert "hunter2" not in str(caught.value)


def test_a_place_that_knows_nothing_of_telemetry_is_named(
    clean_setup: None,
    collector: Any,
    registry: CollectorRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector.script = [404] * 4
    setup.init("x", endpoint=collector.url.replace("//", "//user:hunter2@"), registry=registry)
    handmade.succeed()
    assert setup.flush(20.0) is False
    assert f"HTTP 404 Not Found from {collector.url}/v1/" in caplog.text
    assert "is this an OTLP/HTTP endpoint?" in caplog.text
    assert "hunter2" not in caplog.text


# --- A failed init --------------------------------------------------------------------------
_OF_OTHER_TESTS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _know_threads_of_other_tests() -> None:
    """Idle workers that other tests left may end at any time."""
    _OF_OTHER_TESTS.clear()
    _OF_OTHER_TESTS.update(threading.enumerate())


def left_behind(registry: CollectorRegistry) -> tuple[Any, ...]:
    """Return what an init that fails could leave in this process."""
    return (
        [
            thread.name
            for thread in threading.enumerate()
            if "fuseboard" in thread.name and thread not in _OF_OTHER_TESTS
        ],
        trace._TRACER_PROVIDER,
        type(RUNTIME.telemetry),
        list(registry.collect()),
        dict(setup._STATE.servers),
        setup._STATE.assembly,
    )


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_failed_init_leaves_nothing_and_a_corrected_one_works(
    start: Any, registry: CollectorRegistry, busy_port: int, collector: Any
) -> None:
    before = left_behind(registry)
    with pytest.raises(ConfigurationError, match=rf"init: metrics_port={busy_port}: cannot listen"):
        start(metrics_port=busy_port, region="eu-west")
    assert left_behind(registry) == before
    assert RUNTIME.region is None
    start(metrics_port=0)
    assert resource_of(collector)["service.name"] == "tests"


class PickyProvider(TracerProvider):
    """A provider of the application that takes no processor."""

    def add_span_processor(self, span_processor: Any) -> None:
        raise RuntimeError("frozen")


def test_a_provider_that_fails_leaves_nothing(start: Any, registry: CollectorRegistry) -> None:
    before = left_behind(registry)
    with pytest.raises(RuntimeError, match="frozen"):
        start(tracer_provider=PickyProvider(shutdown_on_exit=False), metrics_port=0)
    assert left_behind(registry) == before
    start(metrics_port=0)


def test_metrics_that_are_registered_already_leave_nothing(
    start: Any, registry: CollectorRegistry
) -> None:
    theirs = Gauge("fuseboard_abandoned_threads", "Somebody else's.", registry=registry)
    before = left_behind(registry)
    with pytest.raises(ValueError, match="fuseboard_abandoned_threads"):
        start(metrics_port=0)
    assert left_behind(registry) == before
    registry.unregister(theirs)
    start(metrics_port=0)


def test_only_what_can_be_given_is_named_as_different(
    start: Any, collector: Any, monkeypatch: pytest.MonkeyPatch, refusing_endpoint: str
) -> None:
    start()
    with pytest.raises(ConfigurationError, match=r"other values for endpoint: call"):
        start(endpoint=refusing_endpoint)
    with pytest.raises(ConfigurationError, match=r"other values for endpoint: call"):
        start(endpoint=None)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "7")
    with pytest.raises(ConfigurationError, match="other values for OTEL_BSP_MAX_QUEUE_SIZE: call"):
        start()
    known = {*inspect.signature(setup.init).parameters}
    assert {_PUBLIC_NAMES.get(f.name, f.name) for f in dataclasses.fields(Settings)} - known == {
        "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BLRP_MAX_QUEUE_SIZE", "OTEL_EXPORTER_OTLP_TIMEOUT",
    }  # fmt: skip
