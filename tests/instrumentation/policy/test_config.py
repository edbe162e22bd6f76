"""Policies say what is wrong with them when they are written."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fuseboard import (
    Breaker,
    Cache,
    Confidence,
    ConfigurationError,
    Effects,
    ErrorClass,
    Fallback,
    Limit,
    Policy,
    Poll,
    ResultSource,
    Retry,
    Validation,
)


async def answer_later(given: Any) -> str:
    return str(given)


NAN, INF = float("nan"), float("inf")
WRONG: list[tuple[type, dict[str, Any], str]] = [
    *((Retry, {"attempts": bad}, "1 to 100") for bad in (0, -1, 101, 2.0, True, "3", None)),
    *((Retry, {"wait_initial": bad}, "from 0 to") for bad in (-1, NAN, INF, "1", None)),
    *((Retry, {"wait_max": bad}, "from 0 to") for bad in (-1, NAN, INF, 1e300)),
    (Retry, {"wait_initial": 5, "wait_max": 1}, "at least wait_initial"),
    *((Retry, {"semantic": bad}, "must be a bool") for bad in (1, "yes", None)),
    *((Retry, {"budget": bad}, "above 0, or None") for bad in (0, -1, NAN, INF, "30")),
    *((Breaker, {"failure_ratio": bad}, "failure_ratio") for bad in (0, -0.1, 1.1, NAN, None)),
    *((Breaker, {"minimum_throughput": bad}, "minimum_throughput") for bad in (0, 2.5, None)),
    *((Breaker, {"half_open_probes": bad}, "1 to 100") for bad in (0, 101)),
    *((Breaker, {"sampling_duration": bad}, "from 0.01 to") for bad in (0, 1e-300, INF, None)),
    *((Breaker, {"slow_call_seconds": bad}, "above 0, or None") for bad in (0, -1, NAN, "5")),
    *((Breaker, {"slow_call_ratio": bad}, "slow_call_ratio") for bad in (0, 1.1, NAN, None)),
    (Breaker, {"key": "host"}, "a function of the bound arguments"),
    (Limit, {}, r"^Limit\(\): must be given concurrency"),
    *((Limit, {"concurrency": bad}, "concurrency=") for bad in (0, -1, 1.5, True, "5")),
    *((Limit, {"rate": bad}, "rate=") for bad in (0, -1, NAN, INF, "5", True)),
    *((Limit, {"rate": 5, "burst": bad}, "burst=") for bad in (0, 1.5, True)),
    (Limit, {"concurrency": 1, "burst": 5}, "needs a rate"),
    *((Limit, {"rate": 1, "wait": bad}, "wait=") for bad in (-1, NAN, INF, None)),
    *((Limit, {"rate": 1, "queue": bad}, "queue=") for bad in (-1, 2.5, None)),
    *((Breaker, {"break_duration": bad}, "above 0") for bad in (0, NAN, None)),
    (Breaker, {"probe_lease": 0}, "above 0, or None"),
    (Breaker, {"scope": "global"}, "'attempt', 'call'"),
    (Breaker, {"also_counts": [ErrorClass.L1_INPUT]}, "also_counts"),
    *((Breaker, {"also_counts": bad}, "a collection") for bad in ("L2_access", 5, None)),
    *((Policy, {"timeout": bad}, "above 0, or None") for bad in (0, -1, NAN, "5", True, 1e300)),
    (Policy, {"budget": 0}, "above 0"),
    (Policy, {"effects": "some"}, "'none', 'idempotent', 'unsafe'"),
    (Policy, {"retry": 3}, "fuseboard.Retry"),
    (Policy, {"breaker": True}, "fuseboard.Breaker"),
    (Policy, {"limit": 20}, "fuseboard.Limit"),
    (Policy, {"validation": {}}, "fuseboard.Validation"),
    (Policy, {"fallback": 7}, "Fallback\\(value="),
    (Policy, {"idempotency_key": "k"}, "must be a function"),
    (Fallback, {}, r"^Fallback\(\): must be given a function, or value="),
    (Fallback, {"function": len, "value": 1}, "only one of them"),
    (Fallback, {"function": 7}, "must be callable"),
    (Fallback, {"value": 1, "source": "live"}, "never live"),
    (Fallback, {"value": 1, "confidence": "total"}, "confidence='total'"),
    (Fallback, {"value": 1, "effects": "x"}, "effects='x'"),
    *((Fallback, {"value": 1, "on": bad}, "a collection") for bad in ("L3_transient", 5, None)),
    (Fallback, {"value": 1, "on": ["L9"]}, "on='L9'"),
    *((Fallback, {"value": 1, "name": bad}, "must be a text") for bad in ("", 5)),
    (Validation, {"non_empty": 1}, "must be a bool"),
    *((Cache, {"ttl": bad}, "seconds above 0") for bad in (0, -1, NAN, INF, "60", None, True)),
    *((Cache, {name: 0}, f"{name}=0") for name in ("redis_ttl", "backfill_ttl")),
    *((Cache, {"stale": bad}, "from 0 to") for bad in (-1, NAN, INF, None)),
    *((Cache, {"max_entries": bad}, "max_entries") for bad in (0, 1.5, None, True)),
    *((Cache, {"stale_on": bad}, "stale_on") for bad in (5, "L3_transient", ["L1_input"])),
    *((Cache, {"redis": bad}, "redis:// URL") for bad in (5, object())),
    *((Cache, {name: 1}, "must be a bool") for name in ("single_flight", "allow_unsafe")),
    (Cache, {"key": "city"}, "must be a function, or None"),
    (Breaker, {"key": answer_later}, "nobody awaits it"),
    (Cache, {"key": answer_later}, "nobody awaits it"),
    (Policy, {"idempotency_key": answer_later}, "nobody awaits it"),
    (Poll, {"check": len, "on_pending": answer_later}, "nobody awaits it"),
    (Validation, {"predicate": answer_later}, "nobody awaits it"),
    (Policy, {"cache": True}, "fuseboard.Cache"),
    (Policy, {"cache": Cache()}, "effects='none'"),
]


@pytest.mark.parametrize(
    ("cls", "arguments", "words"), WRONG, ids=[f"{c.__name__}-{'-'.join(a)}" for c, a, _ in WRONG]
)
def test_wrong_values_are_refused_by_name(cls: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        cls(**arguments)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(cls.__name__)


def test_defaults_are_those_of_the_contract() -> None:
    retry, breaker, policy = Retry(), Breaker(), Policy()
    assert (retry.attempts, retry.wait_initial, retry.wait_max, retry.budget) == (3, 0.5, 30, 30)
    assert (breaker.failure_ratio, breaker.minimum_throughput) == (0.5, 20)
    assert (breaker.sampling_duration, breaker.break_duration) == (60, 60)
    assert (breaker.half_open_probes, breaker.scope) == (1, "attempt")
    assert policy.effects is Effects.UNSAFE
    assert policy.timeout is None
    assert not policy.may_repeat


def test_frozen() -> None:
    for config in (Retry(), Breaker(), Policy(), Fallback(value=1), Validation(), Cache()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, dataclasses.fields(config)[0].name, 1)


def test_fallback_labels() -> None:
    by_function, by_value = Fallback(len), Fallback(value=None)
    assert (by_function.name, by_value.name) == ("len", "default")
    assert (by_function.source, by_value.source) == (ResultSource.FALLBACK, ResultSource.DEFAULT)
    assert (by_function.confidence, by_value.confidence) == (Confidence.MEDIUM, Confidence.LOW)
    assert ErrorClass.L1_INPUT not in by_function.on
    (short,) = Policy(fallback=len).fallbacks
    assert short == by_function


def test_suspicious_settings_warn() -> None:
    with pytest.warns(UserWarning, match="opens at the first failure"):
        Breaker(minimum_throughput=1)
    with pytest.warns(UserWarning, match="will never be reached"):
        Policy(timeout=10, budget=5)
