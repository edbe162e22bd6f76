"""Random policies, faults and clocks: caller, metrics, spans and logs agree with a reference."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from expected import Expected
from hypothesis import HealthCheck, Phase, assume, given, settings
from observed import (
    LogRecords,
    Receiver,
    SeenCall,
    as_dict,
    calls_of,
    read_metrics,
    series_of_tools,
    telemetry,
)
from reference import LAST_MOMENT, Reference
from reference_bounds import Bounds
from reference_breaker import TieError
from scenarios import Scenario, scenarios
from stage import Seen, Stage
from virtual_time import BEGINNING, World, threading_of

from fuseboard import Policy, guard
from fuseboard import conventions as c
from fuseboard.policy import limiter, workers
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.registry import BREAKERS
from fuseboard.runtime import RUNTIME

COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@settings(COMMON, max_examples=120, derandomize=True)
@given(scenario=scenarios())
def test_every_call_is_told_alike_by_all_and_as_its_policy_says(
    receiver: Receiver, scenario: Scenario
) -> None:
    check(receiver, scenario)


@pytest.mark.long
@pytest.mark.timeout(900)
@settings(COMMON, max_examples=1500)
@given(scenario=scenarios())
def test_every_call_is_told_alike_by_all_and_as_its_policy_says_many_times(
    receiver: Receiver, scenario: Scenario
) -> None:
    check(receiver, scenario)


@contextlib.contextmanager
def stage_of(scenario: Scenario, receiver: Receiver) -> Iterator[tuple[World, Stage]]:
    """Play in a world of its own; fail if a thread or a fault of our own is left."""
    world = World(scenario.share)
    # Tests of the server, run before in this process, may leave threads of a pool.
    others = set(threading.enumerate())
    BREAKERS.clear()
    LIMITERS.clear()
    guard.forget_faults()
    end_idle_workers()
    with (
        mock.patch.object(RUNTIME, "clock", world),
        mock.patch.object(RUNTIME, "uniform", world.uniform),
        mock.patch.object(RUNTIME, "_tools", {}),
        mock.patch.object(workers, "threading", threading_of(world)),
        mock.patch.object(limiter, "threading", threading_of(world)),
        telemetry(receiver, scenario.path),
    ):
        try:
            yield world, Stage(world, scenario)
        finally:
            world.let_late_ones_end()
    BREAKERS.clear()
    end_idle_workers()
    allowed = {("asking for a correction", "RuntimeError")} if scenario.repair else set()
    assert guard.fault_counts().keys() <= allowed
    deadline = time.monotonic() + 30
    while left := [
        t.name for t in threading.enumerate() if t.name.startswith("fuseboard") and t not in others
    ]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.001)


def end_idle_workers() -> None:
    """Send the threads home that wait for a next attempt; none may be left but those."""
    deadline = time.monotonic() + 30
    while workers.THREADS.count_abandoned():
        assert time.monotonic() < deadline, "a thread that was left behind never ended"
        time.sleep(0.001)
    while workers.THREADS._idle:
        workers.THREADS._idle.pop().wake.release()


def check(receiver: Receiver, scenario: Scenario, played: Scenario | None = None) -> None:
    """Play a scenario and compare everybody's story of it.

    Args:
        receiver: Takes the telemetry.
        scenario: What happens.
        played: What the shim is given instead.
    """
    reference = Reference(
        scenario.policy,
        scenario.shape,
        scenario.share,
        now=BEGINNING,
        bounds=scenario.bounds,
        repair=scenario.repair,
    )
    log = LogRecords()
    told: list[tuple[Expected, Seen]] = []
    with log.listening(), stage_of(played or scenario, receiver) as (world, stage):
        born = series_of_tools()
        for call in scenario.calls:
            now = world.now + call.pause
            try:
                expected = reference.call(call.steps, now, call.leaves_after)
            except TieError:
                assume(False)
            told.append((expected, stage.play(call)))
            assert world.now == now + expected.duration
            assert read_metrics()["fuseboard_tool_calls_in_flight"] == Counter()
        world.let_late_ones_end()
        samples = read_metrics()
        assert series_of_tools() == born, "a series was born late, which hides its first event"
    for expected, seen in told:
        check_caller(scenario, expected, seen)
        check_bounds(scenario, expected)
    check_metrics(samples, [expected for expected, _ in told], reference)
    found = calls_of(receiver, scenario.path)
    check_calls(found, [expected for expected, _ in told], scenario)
    check_log(log, found, with_ids=scenario.path != "unsampled")
    if reference.session is not None and scenario.bounds and scenario.bounds.budget:
        session = reference.session
        assert (stage.spent.requests, stage.spent.retries) == (session.requests, session.retries)
    transitions = receiver.logs(c.EVENT_BREAKER_TRANSITION)
    moves = [(each[c.BREAKER_FROM], each[c.BREAKER_TO]) for each in transitions]
    assert moves == (reference.breaker.transitions if reference.breaker else [])


def check_caller(scenario: Scenario, expected: Expected, seen: Seen) -> None:
    """Compare what the caller saw: the very objects that the tool made."""
    kind, detail = expected.sees
    assert len(seen.made) == len(expected.attempts)
    assert seen.mistakes == expected.mistakes
    if kind == "kept":
        assert (seen.ending, seen.thing) == ("value", detail)
        return
    if kind == "fallback":
        served = ["fallback", detail]
        if scenario.streams:
            assert seen.items == served[: len(seen.items)]
        else:
            assert (seen.ending, seen.thing) == ("value", served)
        return
    if scenario.streams:
        assert seen.items == list(range(expected.items))
    if scenario.gives_packets and is_raised_fault(expected, seen):
        check_packet(expected, seen)
    elif kind == "value":
        assert seen.ending == "value", seen
        assert scenario.streams or seen.thing is seen.made[detail]
    elif kind == "error":
        assert seen.ending == "error", seen
        if isinstance(seen.thing, asyncio.CancelledError):
            return  # which the event loop makes
        assert seen.thing is seen.made[detail]
    elif kind == "left":
        assert seen.ending == "left", seen
    else:
        assert (seen.ending, type(seen.thing).__name__) == ("error", kind)


def is_raised_fault(expected: Expected, seen: Seen) -> bool:
    """Tell whether an exception is expected that a packet stands for."""
    kind, detail = expected.sees
    if expected.error_class is None or kind in ("value", "left"):
        return False
    return kind != "error" or isinstance(seen.made[detail], Exception)


def check_packet(expected: Expected, seen: Seen) -> None:
    """Compare the packet that stands for an exception."""
    packet, error_class = seen.thing, expected.error_class
    assert seen.ending == "value", seen
    assert packet["ok"] is False
    assert packet["debug_info"]["error_class"] == error_class
    may_help = error_class in ("L1_input", "L3_transient", "L5_semantic")
    assert packet["recoverable"] == (may_help and not expected.is_open), (packet, expected)


def check_bounds(scenario: Scenario, expected: Expected) -> None:
    """Hold the reference itself to what users count on."""
    policy = scenario.policy or Policy()
    attempts = len(expected.attempts)
    corrections = policy.feedback.corrections if policy.feedback else 0
    assert attempts <= (policy.retry.attempts if policy.retry else 1) + corrections
    begun = [start - expected.start for start in expected.starts]
    late = max(step.stubborn for call in scenario.calls for step in call.steps)
    if policy.poll is not None:
        late = max(late, LAST_MOMENT)
    if scenario.repair is not None and not scenario.is_async:
        late = max(late, scenario.repair.took)
    if policy.budget is not None:
        assert all(start < policy.budget for start in begun)
        if scenario.form in ("function", "coroutine"):
            assert expected.duration <= policy.budget + late
    if policy.retry is not None and policy.retry.budget is not None and not corrections:
        assert all(start < policy.retry.budget for start in begun[1:])


def check_metrics(
    samples: dict[str, Counter[tuple[str, ...]]], calls: list[Expected], reference: Reference
) -> None:
    """Compare the exposition text with the reference."""
    assert samples["fuseboard_tool_calls_total"] == Counter(
        (call.error_class.value if call.error_class else "none", call.outcome.value)
        for call in calls
    )
    assert samples["fuseboard_tool_attempts_total"] == Counter(
        (error_class, result) for call in calls for result, error_class in call.attempts
    )
    assert samples["fuseboard_tool_attempted_calls_total"] == Counter(
        (call.attempts[0][0], call.retry_end) for call in calls if call.attempts
    )
    assert samples["fuseboard_tool_call_duration_seconds_count"].total() == len(calls)
    seconds = samples["fuseboard_tool_call_duration_seconds_sum"].total()
    assert seconds == pytest.approx(sum(call.duration for call in calls))
    attempts = sum(len(call.attempts) for call in calls)
    assert samples["fuseboard_tool_attempt_duration_seconds_count"].total() == attempts
    backoff = sum(call.backoff for call in calls)
    assert samples["fuseboard_tool_backoff_seconds_total"].total() == pytest.approx(backoff)
    # Label values come in the order of the labels' names: action, layer.
    assert samples["fuseboard_layer_actions_total"] == Counter(
        {
            (action, layer): count
            for (layer, action), count in sum(
                (call.actions for call in calls), Counter[tuple[str, str]]()
            ).items()
        }
    )
    moves = reference.breaker.transitions if reference.breaker else []
    assert Counter(
        {key[1:]: n for key, n in samples["fuseboard_breaker_transitions_total"].items()}
    ) == Counter(moves)
    assert samples["fuseboard_telemetry_dropped_total"] == Counter()


def check_calls(found: list[SeenCall], calls: list[Expected], scenario: Scenario) -> None:
    """Compare what arrived at the collector with the reference."""
    assert len(found) == len(calls)
    remaining = list(found)
    for call in calls:
        # Two calls may begin in the same moment, hence each takes one that is like it.
        like = next((each for each in remaining if is_like(each, call)), None)
        assert like is not None, (call, remaining)
        remaining.remove(like)
        if scenario.path != "unsampled":
            check_attempts(like, call)


def check_log(log: LogRecords, found: list[SeenCall], *, with_ids: bool) -> None:
    """Compare the log with what arrived: one record for each call, and no other."""
    assert Counter(log.facts(with_ids=with_ids)) == Counter(call.facts for call in found)


def is_like(seen: SeenCall, call: Expected) -> bool:
    """Tell whether a call that arrived may be the expected one."""
    return (
        seen.outcome == call.outcome
        and seen.error_class == (call.error_class.value if call.error_class else None)
        and seen.attempts == len(call.attempts)
        and abs(seen.backoff - call.backoff) < 1e-6
        and abs(seen.duration - call.duration) < 1e-6
        and (seen.breaker_state == call.breaker_state)
        and (call.outcome not in ("ok", "error", "abandoned") or (seen.items or 0) == call.items)
    )


def check_attempts(seen: SeenCall, call: Expected) -> None:
    """Compare the attempts' spans: none for a call that made one that did not fail."""
    has_failed = any(error_class != "none" for _, error_class in call.attempts)
    if len(call.attempts) < 2 and not has_failed:
        assert seen.attempt_spans == ()
        return
    attributes = [as_dict(span.attributes) for span in seen.attempt_spans]
    assert [each[c.ATTEMPT_NUMBER] for each in attributes] == list(range(1, len(call.attempts) + 1))
    assert [each.get(c.ERROR_CLASSIFIED_AS, "none") for each in attributes] == [
        error_class for _, error_class in call.attempts
    ]
    for span, (_, error_class) in zip(seen.attempt_spans, call.attempts, strict=True):
        assert (span.status.code == 2) == (error_class != "none")


SPOILT: dict[str, Callable[[Policy], dict[str, Any]]] = {
    "retries once more": lambda old: (
        old.retry and {"retry": replace(old.retry, attempts=old.retry.attempts + 1)}
    ),
    "waits otherwise": lambda old: (
        old.retry and {"retry": replace(old.retry, wait_initial=0.75, wait_max=9.0)}
    ),
    "repeats what acts": lambda old: {"effects": "none"},
    "never opens": lambda old: (
        old.breaker and {"breaker": replace(old.breaker, minimum_throughput=1000)}
    ),
    "stays open longer": lambda old: (
        old.breaker and {"breaker": replace(old.breaker, break_duration=9.0)}
    ),
    "asks for one more probe": lambda old: (
        old.breaker
        and {"breaker": replace(old.breaker, half_open_probes=old.breaker.half_open_probes + 1)}
    ),
    "has time": lambda old: {"timeout": None},
    "has no end": lambda old: {"budget": None},
    "takes every answer": lambda old: {"validation": None, "switch_on": ()},
    "keeps nothing": lambda old: old.cache and {"cache": None},
    "has no limit": lambda old: old.limit and {"limit": None},
    "lets nobody queue": lambda old: old.limit and {"limit": replace(old.limit, wait=0.0)},
    "waits for what is slow": lambda old: (
        old.breaker
        and old.breaker.slow_call_seconds
        and {"breaker": replace(old.breaker, slow_call_seconds=None)}
    ),
    "corrects once more": lambda old: (
        old.feedback
        and {"feedback": replace(old.feedback, corrections=old.feedback.corrections + 1)}
    ),
    "asks nobody": lambda old: old.feedback and {"feedback": None},
    "gives up asking": lambda old: old.poll and {"poll": replace(old.poll, faults=0)},
    "asks for ever": lambda old: old.poll and {"poll": replace(old.poll, timeout=500.0)},
    "asks otherwise": lambda old: (
        old.poll and {"poll": replace(old.poll, interval=0.125, interval_max=9.0)}
    ),
    "never switches": lambda old: old.switch_on and {"switch_on": ()},
    "serves nothing else": lambda old: {"fallback": (), "switch_on": ()},
}
"""Ways to be wrong: what is different about the policy that the shim really follows."""
SPOILT_SESSIONS: dict[str, Callable[[Bounds], Bounds]] = {
    "knows no session's budget": lambda old: replace(old, budget=None),
    "knows no session's end": lambda old: replace(old, timeout=None),
    "knows no turn's end": lambda old: replace(old, turn_timeout=None),
}
QUICKLY_SEEN = ("retries once more", "repeats what acts", "asks nobody", "has no limit")


def spoil(scenario: Scenario, how: str) -> Scenario | None:
    """Return the scenario of a shim that does something else, or None where it cannot show."""
    if how in SPOILT:
        differs = SPOILT[how](scenario.policy) if scenario.policy else None
        policy = replace(scenario.policy, **differs) if scenario.policy and differs else None
        return replace(scenario, policy=policy) if policy else None
    if how in SPOILT_SESSIONS:
        return scenario.bounds and replace(scenario, bounds=SPOILT_SESSIONS[how](scenario.bounds))
    return replace(scenario, gives_packets=False)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=[pytest.mark.long] * (how not in QUICKLY_SEEN))
        for how in (*SPOILT, *SPOILT_SESSIONS, "gives no packets")
    ],
)
def test_a_shim_that_does_something_else_is_found_out(receiver: Receiver, how: str) -> None:
    """The reference is no mirror of the shim."""

    @settings(
        COMMON,
        max_examples=1500,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate],
    )
    @given(scenario=scenarios())
    def some(scenario: Scenario) -> None:
        played = spoil(scenario, how)
        assume(played not in (None, scenario))
        check(receiver, scenario, played)

    with pytest.raises(AssertionError):
        some()
