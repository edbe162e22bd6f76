"""pybreaker's breakers are shown like fuseboard's own."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pybreaker
import pytest
from tests.instrumentation.conftest import RecordingTelemetry

import fuseboard
from fuseboard import BreakerState, ErrorClass, Outcome
from fuseboard.adapters import instrument_pybreaker, uninstrument_pybreaker
from fuseboard.policy.registry import BREAKERS

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


@pytest.fixture(autouse=True)
def listening_to_breakers() -> Iterator[None]:
    instrument_pybreaker()
    yield
    uninstrument_pybreaker()


def breaker_of(**options: Any) -> pybreaker.CircuitBreaker:
    settings: dict[str, Any] = {"fail_max": 2, "reset_timeout": 60, "name": "search-api", **options}
    return pybreaker.CircuitBreaker(**settings)


class Upstream:
    """Fails or answers behind a breaker, as a tool uses it."""

    def __init__(self, breaker: pybreaker.CircuitBreaker) -> None:
        self.breaker = breaker
        self.error: Exception | None = ConnectionResetError("away")
        self.asked = 0

        @fuseboard.tool(region="eu")
        def search() -> str:
            return str(breaker.call(self.ask))

        self.search = search

    def ask(self) -> str:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return "found"

    def fail(self, times: int) -> None:
        for _ in range(times):
            with pytest.raises((ConnectionResetError, pybreaker.CircuitBreakerError)):
                self.search()


def moves(telemetry: RecordingTelemetry) -> list[tuple[BreakerState, BreakerState, str]]:
    return [(one.from_state, one.to_state, one.reason) for one in telemetry.transitions]


def test_its_transitions_are_transitions(telemetry: RecordingTelemetry) -> None:
    breaker = breaker_of()
    upstream = Upstream(breaker)
    upstream.fail(2)
    opened = telemetry.transitions[0]
    assert (opened.name, opened.tool, opened.region) == ("search/eu/search-api", "search", "eu")
    assert (opened.from_state, opened.to_state, opened.reason) == (CLOSED, OPEN, "failure_count")
    assert (opened.failures, opened.failure_ratio) == (2, None)
    assert opened.error_class is ErrorClass.L3_TRANSIENT
    assert opened.call is telemetry.calls[1]
    breaker.reset_timeout = 0
    upstream.fail(1)
    upstream.error = None
    assert upstream.search() == "found"
    assert moves(telemetry)[1:] == [
        (OPEN, HALF_OPEN, "break_over"),
        (HALF_OPEN, OPEN, "probe_failed"),
        (OPEN, HALF_OPEN, "break_over"),
        (HALF_OPEN, CLOSED, "probe_succeeded"),
    ]


def test_a_breaker_is_listed_from_its_first_use(telemetry: RecordingTelemetry) -> None:
    breaker = breaker_of()
    upstream = Upstream(breaker)
    assert BREAKERS.statuses() == []
    upstream.fail(1)
    (created,) = telemetry.breakers
    assert (created.name, created.state) == ("search/eu/search-api", CLOSED)
    upstream.fail(1)
    (status,) = BREAKERS.statuses()
    assert (status.name, status.state) == ("search/eu/search-api", OPEN)
    assert status.since_unix_ns >= created.since_unix_ns
    uninstrument_pybreaker()
    assert BREAKERS.statuses() == []


def test_a_rejection_carries_what_opened_the_breaker(telemetry: RecordingTelemetry) -> None:
    upstream = Upstream(breaker_of())
    upstream.error = KeyError("defect")
    for _ in range(2):
        with pytest.raises((KeyError, pybreaker.CircuitBreakerError)):
            upstream.search()
    try:
        raise ValueError("what the agent was handling")
    except ValueError:
        with pytest.raises(pybreaker.CircuitBreakerError):
            upstream.search()
    assert upstream.asked == 2
    tripping, rejected = telemetry.calls[1:]
    assert tripping.fault is not None
    assert tripping.fault.verdict.classifier_id == "python_defect_matcher", "the cause decides"
    assert rejected.fault is not None
    verdict = rejected.fault.verdict
    assert (verdict.classifier_id, verdict.error_class) == (
        "circuit_open", ErrorClass.L4_PERSISTENT
    )  # fmt: skip
    assert not verdict.retryable
    assert rejected.layer_actions == (("breaker", "rejected"),)
    assert tripping.layer_actions == ()


def test_without_the_adapter_a_rejection_is_transient(telemetry: RecordingTelemetry) -> None:
    uninstrument_pybreaker()
    upstream = Upstream(breaker_of())
    upstream.fail(3)
    fault = telemetry.last.fault
    assert fault is not None
    assert (fault.verdict.classifier_id, fault.verdict.error_class) == (
        "circuit_open", ErrorClass.L3_TRANSIENT
    )  # fmt: skip
    assert telemetry.transitions == []


def test_breakers_that_are_there_already_are_found(telemetry: RecordingTelemetry) -> None:
    uninstrument_pybreaker()
    early = breaker_of(name="early")
    instrument_pybreaker()
    upstream = Upstream(early)
    upstream.fail(2)
    assert [one.name for one in telemetry.transitions] == ["search/eu/early"]


def test_by_hand_and_outside_of_a_tool(telemetry: RecordingTelemetry) -> None:
    breaker = breaker_of(name=None)
    breaker.open()
    breaker.open()
    breaker.close()
    assert moves(telemetry) == [
        (CLOSED, OPEN, "opened_by_hand"),
        (OPEN, CLOSED, "closed_by_hand"),
    ]
    opened = telemetry.transitions[0]
    assert opened.name.startswith("_other/pybreaker-")
    assert (opened.tool, opened.call, opened.error_class) == ("_other", None, None)


def test_everything_is_restored(telemetry: RecordingTelemetry) -> None:
    breaker = breaker_of()
    assert len(breaker.listeners) == 1
    uninstrument_pybreaker()
    assert breaker.listeners == ()
    assert not hasattr(pybreaker.CircuitBreaker.__init__, "__wrapped__")
    assert not hasattr(pybreaker.CircuitOpenState.before_call, "__wrapped__")
    Upstream(breaker).fail(3)
    assert telemetry.transitions == []
    assert breaker_of().listeners == ()


def test_a_second_installation_listens_once(telemetry: RecordingTelemetry) -> None:
    breaker = breaker_of()
    instrument_pybreaker()
    assert len(breaker.listeners) == 1
    Upstream(breaker).fail(2)
    assert len(telemetry.transitions) == 1


def test_a_breaker_is_not_kept_alive(telemetry: RecordingTelemetry) -> None:
    breaker = breaker_of()
    gone = weakref.ref(breaker)
    del breaker
    gc.collect()
    assert gone() is None


def test_what_it_does_is_left_alone(telemetry: RecordingTelemetry) -> None:
    heard: list[str] = []

    class Own(pybreaker.CircuitBreakerListener):
        def state_change(self, cb: Any, old_state: Any, new_state: Any) -> None:
            heard.append(new_state.name)

    upstream = Upstream(breaker_of(listeners=[Own()]))
    with pytest.raises(ConnectionResetError):
        upstream.search()
    with pytest.raises(pybreaker.CircuitBreakerError, match="threshold reached"):
        upstream.search()
    with pytest.raises(pybreaker.CircuitBreakerError, match="still open"):
        upstream.search()
    assert heard == ["open"]
    assert {call.outcome for call in telemetry.calls} == {Outcome.ERROR}
