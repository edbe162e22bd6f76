"""The state machine of one alert instance: Prometheus' own, with a third truth value.

Prometheus knows true and false, so an alert whose data stop looks resolved. Here missing data
hold a firing alert for ``keep_firing`` and then turn it into ``no_data``; only data newer than
the last true evaluation can resolve it. While data flow, the two machines do the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

FORGET_NO_DATA_AFTER: Final = timedelta(days=7)
"""How long an instance without data is remembered: a tool may be gone for good."""


class State(StrEnum):
    """State of an alert instance, as stored in ``alert_events``."""

    PENDING = "pending"
    FIRING = "firing"
    NO_DATA = "no_data"
    RESOLVED = "resolved"
    INACTIVE = "inactive"


NOTIFIED: Final = frozenset({State.FIRING, State.NO_DATA, State.RESOLVED})
"""The states whose beginning is worth a notification."""

Labels = tuple[tuple[str, str], ...]
"""Pairs in a fixed order: the identity of an instance within its rule."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What one evaluation saw of one label set.

    Attributes:
        labels: The label set.
        is_true: Whether the rule's condition is true.
        is_well: Whether the value itself is below the threshold; a condition may also be false
            for want of calls.
        value: The measured value, finite.
        newest: When the newest of the underlying data happened.
    """

    labels: Labels
    is_true: bool
    is_well: bool
    value: float
    newest: datetime


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a condition must hold, and how long an alert outlasts it; scaled."""

    hold: timedelta
    keep_firing: timedelta


@dataclass(frozen=True, slots=True)
class Instance:
    """One active alert.

    Attributes:
        state: ``pending``, ``firing`` or ``no_data``.
        active_at: When the condition became true.
        last_true: The last evaluation at which it was true.
        fired_at: When it began to fire, if it did.
        keep_since: The first evaluation since ``last_true`` at which it was not true.
        value: The last measured value.
        notifications: How many notifications it has led to.
        peak: The worst measured value since it began; None = no other than ``value``.
    """

    labels: Labels
    state: State
    active_at: datetime
    last_true: datetime
    value: float
    fired_at: datetime | None = None
    keep_since: datetime | None = None
    notifications: int = 0
    peak: float | None = None

    @property
    def worst(self) -> float:
        """Return the worst value since it began: of every rule, the highest."""
        return self.value if self.peak is None else max(self.peak, self.value)

    def shifted(self, gap: timedelta) -> Instance:
        """Return the instance as if ``gap`` had not happened: clocks stand still in an outage."""
        return replace(
            self,
            active_at=self.active_at + gap if self.state is State.PENDING else self.active_at,
            keep_since=self.keep_since + gap if self.keep_since else None,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one evaluation for one label set.

    Attributes:
        instance: The instance afterwards; None if it is at rest.
        entered: The state that it has just entered; None if nothing changed.
    """

    instance: Instance | None
    entered: State | None = None


def advance(
    instance: Instance | None, seen: Observation | None, now: datetime, timing: Timing
) -> Step:
    """Move one label set through one evaluation.

    Args:
        instance: Its state so far; None if it is at rest.
        seen: What the evaluation saw of it; None without data.
        now: The time of the evaluation.
        timing: The rule's hold and keep-firing times.
    """
    if seen is not None and seen.is_true:
        return _when_true(instance, seen, now, timing)
    if instance is None:
        return Step(None)
    if instance.state is State.PENDING:
        return Step(None, State.INACTIVE)
    return _when_not_true(instance, _is_evidence(instance, seen), now, timing)


def _is_evidence(instance: Instance, seen: Observation | None) -> bool:
    """Return whether an evaluation that is not true speaks against the alert.

    Calls that merely leave the window say nothing. After a gap the first few calls are too few
    to make the condition true again, so there the value itself must be well.
    """
    if seen is None or seen.newest <= instance.last_true:
        return False
    return instance.state is State.FIRING or seen.is_well


def _when_true(instance: Instance | None, seen: Observation, now: datetime, timing: Timing) -> Step:
    if instance is None:
        started = Instance(seen.labels, State.PENDING, now, now, seen.value, peak=seen.value)
        if timing.hold <= timedelta(0):
            return _enter(replace(started, fired_at=now), State.FIRING)
        return Step(started, State.PENDING)
    current = replace(instance, last_true=now, keep_since=None, value=seen.value,
                      peak=max(instance.worst, seen.value))  # fmt: skip
    if instance.state is State.NO_DATA:
        return _enter(current, State.FIRING)
    if instance.state is State.PENDING and now - instance.active_at >= timing.hold:
        return _enter(replace(current, fired_at=now), State.FIRING)
    return Step(current)


def _when_not_true(instance: Instance, is_evident: bool, now: datetime, timing: Timing) -> Step:
    # Prometheus counts keep_firing_for from the first evaluation that is not true.
    since = instance.keep_since or now
    kept = replace(instance, keep_since=since)
    if now - since < timing.keep_firing:
        return Step(kept)
    if is_evident:
        return Step(None, State.RESOLVED)
    if instance.state is State.FIRING:
        return _enter(kept, State.NO_DATA)
    if now - since > FORGET_NO_DATA_AFTER:
        return Step(None, State.INACTIVE)
    return Step(kept)


def _enter(instance: Instance, state: State) -> Step:
    entered = replace(instance, state=state, notifications=instance.notifications + 1)
    return Step(entered, state)
