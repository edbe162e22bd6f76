"""The settings of ``fuseboard.init``: where they come from and what is legal."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from fuseboard import conventions as c
from fuseboard.errors import ConfigurationError
from fuseboard.telemetry.headers import headers_for
from fuseboard.telemetry.redaction import redact

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from prometheus_client import CollectorRegistry

DEFAULT_ENDPOINT: Final = "http://127.0.0.1:4318"
MAX_SHUTDOWN_SECONDS: Final = 60.0
MAX_NAME: Final = 256
LOG_CALLS: Final = ("problems", "all", "off")
"""Which calls are logged; the first is the default."""
Number = TypeVar("Number", int, float)
_TRACES_PATH: Final = "/v1/traces"
_LOGS_PATH: Final = "/v1/logs"
_SIGNAL_PATHS: Final = (_TRACES_PATH, _LOGS_PATH, "/v1/metrics")
# What the settings that are no arguments of ``init`` come from.
_PUBLIC_NAMES: Final = {
    "has_endpoint": "endpoint",
    "traces_url": "endpoint",
    "logs_url": "endpoint",
    "span_capacity": "OTEL_BSP_MAX_QUEUE_SIZE",
    "log_capacity": "OTEL_BLRP_MAX_QUEUE_SIZE",
    "request_timeout": "OTEL_EXPORTER_OTLP_TIMEOUT",
}


@dataclass(frozen=True)
class Settings:
    """What ``init`` decided; equal settings make a second ``init`` harmless.

    Attributes:
        endpoint: Base URL of the collector.
        has_endpoint: Whether somebody chose it for fuseboard (argument or FUSEBOARD_ENDPOINT).
        config: The file of policies, absolute.
        log_calls: Which calls are logged: one of ``LOG_CALLS``.
        traces_url: Where spans go.
        logs_url: Where log events go.
    """

    service: str | None
    region: str | None
    environment: str | None
    endpoint: str
    has_endpoint: bool
    traces_url: str
    logs_url: str
    regions: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    config: Path | None
    log_calls: str
    registry: CollectorRegistry | None
    tracer_provider: TracerProvider | None
    metrics_port: int | None
    record_arguments: bool
    record_results: bool
    heartbeat_seconds: float
    shutdown_timeout: float
    span_capacity: int
    log_capacity: int
    request_timeout: float

    def differences(self, other: Settings) -> list[str]:
        """Return what differs, by the names of the arguments of ``init`` or of the variables."""
        differing = [key for key, value in vars(self).items() if value != getattr(other, key)]
        return sorted({_PUBLIC_NAMES.get(key, key) for key in differing})


def resolve(
    *,
    service: str | None,
    region: str | None,
    environment: str | None,
    endpoint: str | None,
    regions: Iterable[str],
    headers: Mapping[str, str] | None,
    config: Path | None,
    log_calls: str | None,
    registry: CollectorRegistry | None,
    tracer_provider: TracerProvider | None,
    metrics_port: int | None,
    record_arguments: bool,
    record_results: bool,
    heartbeat_seconds: float,
    shutdown_timeout: float,
) -> Settings:
    """Complete the arguments of ``init`` from the environment and check them.

    Precedence: argument, then FUSEBOARD_*, then OTEL_*, then the default.

    Raises:
        ConfigurationError: A value is not legal; names it and what is.
    """
    chosen = endpoint if endpoint is not None else _environment(c.ENV_ENDPOINT)
    others = _environment("OTEL_EXPORTER_OTLP_ENDPOINT") or DEFAULT_ENDPOINT
    base = others if chosen is None else chosen
    _check_url("endpoint", base)
    _check_base("endpoint", base)
    traces = None if chosen else _environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    logs = None if chosen else _environment("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
    for name, url in (("traces endpoint", traces), ("logs endpoint", logs)):
        if url:
            _check_url(name, url)
    return Settings(
        service=_text("service", service, c.ENV_SERVICE),
        region=_text("region", region, c.ENV_REGION),
        environment=_text("environment", environment, c.ENV_ENVIRONMENT),
        endpoint=base,
        has_endpoint=chosen is not None,
        traces_url=traces or base.rstrip("/") + _TRACES_PATH,
        logs_url=logs or base.rstrip("/") + _LOGS_PATH,
        regions=_regions(regions),
        headers=headers_for(base, headers, is_chosen=chosen is not None),
        config=config,
        log_calls=_choice("log_calls", log_calls, c.ENV_LOG_CALLS, LOG_CALLS),
        registry=_registry(registry),
        tracer_provider=_provider(tracer_provider),
        metrics_port=_port(metrics_port),
        record_arguments=_switch("record_arguments", record_arguments),
        record_results=_switch("record_results", record_results),
        heartbeat_seconds=_seconds("heartbeat_seconds", heartbeat_seconds, 0.05, 3600.0),
        shutdown_timeout=_seconds("shutdown_timeout", shutdown_timeout, 0.0, MAX_SHUTDOWN_SECONDS),
        span_capacity=_from_environment("OTEL_BSP_MAX_QUEUE_SIZE", 8192, 1, int),
        log_capacity=_from_environment("OTEL_BLRP_MAX_QUEUE_SIZE", 2048, 1, int),
        request_timeout=_from_environment("OTEL_EXPORTER_OTLP_TIMEOUT", 10.0, 0.05, float),
    )


def is_disabled() -> bool:
    """Tell whether OTEL_SDK_DISABLED turns everything off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def _environment(variable: str) -> str | None:
    return os.environ.get(variable, "").strip() or None


def _wrong(argument: str, value: object, legal: str) -> ConfigurationError:
    return ConfigurationError(f"fuseboard.init: {argument}={value!r} is not legal: use {legal}")


def _text(argument: str, value: str | None, variable: str) -> str | None:
    if value is None:
        return _environment(variable)
    if not isinstance(value, str) or not 0 < len(value.strip()) <= MAX_NAME:
        raise _wrong(argument, value, f"a text of 1 to {MAX_NAME} characters, or None")
    return value


def _check_url(argument: str, value: str) -> None:
    legal = "a base URL such as 'http://127.0.0.1:4318' (http or https, with a host)"
    if not isinstance(value, str):
        raise _wrong(argument, value, legal)
    try:
        url = urlsplit(value)
        is_legal = url.scheme in {"http", "https"} and bool(url.hostname) and (url.port or 1) > 0
        (url.hostname or "").encode("idna")  # as connecting does
    except ValueError:
        is_legal = False
    if not is_legal:
        raise _wrong(argument, redact(value), legal)  # it may hold a password


def _check_base(argument: str, url: str) -> None:
    """Refuse the URL of one signal, to which the path of each would be added once more."""
    path = urlsplit(url).path.rstrip("/")
    for signal_path in _SIGNAL_PATHS:
        if path.endswith(signal_path):
            raise _wrong(argument, redact(url), f"the base URL, without {signal_path}")


def _regions(values: Iterable[str]) -> tuple[str, ...]:
    legal = "a list of at most 50 region names such as ['us-east', 'eu-west']"
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise _wrong("regions", values, legal)
    regions = tuple(dict.fromkeys(values))
    if len(regions) > 50 or not all(isinstance(each, str) and each for each in regions):
        raise _wrong("regions", values, legal)
    return regions


def _registry(value: CollectorRegistry | None) -> CollectorRegistry | None:
    if value is not None and not callable(getattr(value, "register", None)):
        raise _wrong("registry", value, "a prometheus_client.CollectorRegistry, or None")
    return value


def _provider(value: TracerProvider | None) -> TracerProvider | None:
    if value is not None and not callable(getattr(value, "get_tracer", None)):
        raise _wrong("tracer_provider", value, "an OpenTelemetry TracerProvider, or None")
    return value


def _port(value: int | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 65535:
        raise _wrong("metrics_port", value, "a port from 0 (any free one) to 65535, or None")
    return value


def _choice(argument: str, value: str | None, variable: str, choices: tuple[str, ...]) -> str:
    legal = ", ".join(repr(choice) for choice in choices)
    if value is not None:
        if value not in choices:
            raise _wrong(argument, value, f"one of {legal}")
        return value
    text = _environment(variable)
    if text is None:
        return choices[0]
    if text.lower() not in choices:
        raise ConfigurationError(f"{variable}={text!r} is not legal: use one of {legal}")
    return text.lower()


def _switch(argument: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise _wrong(argument, value, "True or False")
    return value


def _seconds(argument: str, value: float, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _wrong(argument, value, f"seconds from {low:g} to {high:g}")
    return float(value)


def _from_environment(
    variable: str, default: Number, low: float, number: Callable[[str], Number]
) -> Number:
    text = _environment(variable)
    if text is None:
        return default
    try:
        value = number(text)
    except ValueError:
        value = number("0")
    if not math.isfinite(value) or value < low:
        raise ConfigurationError(f"{variable}={text!r} is not legal: use a number from {low:g}")
    return value
