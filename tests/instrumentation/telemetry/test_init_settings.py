"""``init``: precedence, checks, idempotence."""

from __future__ import annotations

from typing import Any

import handmade_calls as handmade
import pytest
from conftest import as_dict
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

from fuseboard import setup
from fuseboard.errors import ConfigurationError
from fuseboard.runtime import RUNTIME, NullTelemetry


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
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc,x-team=sre")
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
