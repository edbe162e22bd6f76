"""The state machine against Prometheus' own, written down here a second time, and its promises."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_calls import at

from fuseboard_alerts import memory as documents
from fuseboard_alerts.memory import Memory
from fuseboard_alerts.state import (
    FORGET_NO_DATA_AFTER,
    Instance,
    Observation,
    State,
    Timing,
    advance,
)

LABELS = (("job", "j"), ("tool", "t"), ("region", "r"))
STEP = 15
TRUTHS = {"true": True, "false": False, "none": None}


@dataclass
class PrometheusAlert:
    """One alert of Prometheus 2.42's rule manager (rules/alerting.go), for true and false."""

    hold: float
    keep: float
    state: str = "inactive"
    active_at: float = 0
    keep_since: float | None = None

    def eval(self, second: float, is_true: bool) -> str:
        if is_true:
            if self.state == "inactive":
                self.state, self.active_at = "pending", second
            self.keep_since = None
        elif self.state != "inactive":
            is_kept = False
            if self.state == "firing" and self.keep > 0:
                if self.keep_since is None:
                    self.keep_since = second
                is_kept = second - self.keep_since < self.keep
            if not is_kept:
                self.state, self.keep_since = "inactive", None
                return self.state
        if self.state == "pending" and second - self.active_at >= self.hold:
            self.state = "firing"
        return self.state


def seen(truth: bool | None, now: datetime, newest: datetime | None = None) -> Observation | None:
    if truth is None:
        return None
    return Observation(LABELS, truth, not truth, 0.5 if truth else 0.0, newest or now)


def play(
    truths: list[bool | None], hold: float, keep: float
) -> list[tuple[State | None, State | None]]:
    """Return (state, entered) after each evaluation."""
    instance: Instance | None = None
    told = []
    timing = Timing(timedelta(seconds=hold), timedelta(seconds=keep))
    for index, truth in enumerate(truths):
        now = at(index * STEP)
        step = advance(instance, seen(truth, now), now, timing)
        instance = step.instance
        told.append((instance.state if instance else None, step.entered))
    return told


HOLDS = st.sampled_from([0, 15, 30, 120])
KEEPS = st.sampled_from([0, 15, 45, 300])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.booleans(), max_size=60), HOLDS, KEEPS)
def test_while_data_flow_it_does_what_prometheus_does(
    truths: list[bool], hold: float, keep: float
) -> None:
    prometheus = PrometheusAlert(hold, keep)
    expected = [prometheus.eval(index * STEP, truth) for index, truth in enumerate(truths)]
    found = [str(state or "inactive") for state, _ in play([*truths], hold, keep)]
    assert found == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([True, False, None]), max_size=60), HOLDS, KEEPS)
def test_every_story_is_well_formed(truths: list[bool | None], hold: float, keep: float) -> None:
    told = play(truths, hold, keep)
    is_open = False
    for truth, (_, entered) in zip(truths, told, strict=True):
        if entered is State.RESOLVED:
            assert is_open, "only what fired is resolved"
            assert truth is False, "only data resolve"
            is_open = False
        elif entered is State.NO_DATA:
            assert is_open
            assert truth is None
        elif entered is State.FIRING:
            assert truth is True
            is_open = True


def test_no_data_is_told_once_and_ends_by_either_truth() -> None:
    up = [True, True, True]
    quiet: list[bool | None] = [None] * 5
    for last, expected in ((True, State.FIRING), (False, State.RESOLVED)):
        entered = [one for _, one in play([*up, *quiet, last], 15, 30) if one]
        assert entered == [State.PENDING, State.FIRING, State.NO_DATA, expected]


def test_pending_without_data_is_dropped() -> None:
    assert [one for _, one in play([True, None], 60, 60) if one] == [State.PENDING, State.INACTIVE]


def test_no_data_for_a_week_is_forgotten_without_a_word_to_receivers() -> None:
    timing = Timing(timedelta(0), timedelta(0))
    firing = advance(None, seen(True, at(0)), at(0), timing).instance
    lost = advance(firing, None, at(15), timing).instance
    assert lost is not None
    kept = advance(lost, None, at(15) + FORGET_NO_DATA_AFTER, timing)
    assert (kept.instance, kept.entered) == (lost, None)
    gone = advance(lost, None, at(16) + FORGET_NO_DATA_AFTER, timing)
    assert (gone.instance, gone.entered) == (None, State.INACTIVE)


def test_data_that_only_leave_the_window_are_no_evidence() -> None:
    timing = Timing(timedelta(0), timedelta(0))
    firing = advance(None, seen(True, at(0)), at(0), timing).instance
    stale = advance(firing, seen(False, at(15), newest=at(0)), at(15), timing)
    assert stale.entered is State.NO_DATA
    fresh = advance(firing, seen(False, at(15), newest=at(1)), at(15), timing)
    assert fresh.entered is State.RESOLVED


def test_after_a_gap_too_few_calls_do_not_resolve() -> None:
    timing = Timing(timedelta(0), timedelta(0))
    firing = advance(None, seen(True, at(0)), at(0), timing).instance
    lost = advance(firing, None, at(15), timing).instance
    few = Observation(LABELS, is_true=False, is_well=False, value=0.9, newest=at(30))
    assert advance(lost, few, at(30), timing).entered is None


@pytest.mark.parametrize("truths", [[True], [True, True, True], [True, True, True, None, None]])
def test_memory_survives_a_round_trip(truths: list[bool | None]) -> None:
    instance: Instance | None = None
    timing = Timing(timedelta(seconds=15), timedelta(seconds=15))
    for index, truth in enumerate(truths):
        now = at(index * STEP)
        instance = advance(instance, seen(truth, now), now, timing).instance
    assert instance is not None
    memory = Memory(at(99), {("Rule/warning", LABELS): instance}, {"r": [{"alerts": [1]}]})
    assert documents.load(documents.dump(memory)) == memory


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2}', '{"version": 1}', '{"version": 1, "instances": 5}'],
)
def test_what_is_no_memory_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        documents.load(text)
