"""Random policies, and random histories of a tool that they guard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from expected import Repair, Shape
from fault_scripts import KINDS, Check, Step
from hypothesis import strategies as st
from reference_bounds import Bounds
from virtual_time import TICK

from fuseboard import (
    Breaker,
    Budget,
    Cache,
    ErrorClass,
    Fallback,
    Feedback,
    Limit,
    Policy,
    Poll,
    Retry,
    Validation,
)

Form = Literal["function", "coroutine", "generator", "async generator"]
FORMS: Final[tuple[Form, ...]] = ("function", "coroutine", "generator", "async generator")
PATHS: Final = ("fast", "sdk", "unsampled")
_QUICK: Final = (0.0, TICK, 16 * TICK, 48 * TICK)
_PASSING: Final = ("429", "500", "refused", "reset", "own timeout", "unknown")
_LONG: Final = 50.0
"""Longer than every limit."""


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        steps: What its attempts do.
        pause: Seconds before it.
        leaves_after: How many items its consumer takes; None for all.
    """

    steps: list[Step]
    pause: float
    leaves_after: int | None


@dataclass(frozen=True)
class Scenario:
    """A tool and what happens to it."""

    form: Form
    path: str
    policy: Policy | None
    calls: list[Call]
    share: float
    bounds: Bounds | None = None
    """What the session gives, in which all calls are made, each in a turn of its own."""
    repair: Repair | None = None
    gives_packets: bool = False

    @property
    def is_async(self) -> bool:
        return self.form in ("coroutine", "async generator")

    @property
    def streams(self) -> bool:
        return self.form in ("generator", "async generator")

    @property
    def shape(self) -> Shape:
        return Shape(self.form != "generator", self.streams, self.is_async)


def _raises() -> None:
    raise RuntimeError("no better")


def _answers_badly() -> dict[str, bool]:
    return {"isError": True}


@st.composite
def fallbacks(draw: st.DrawFn) -> tuple[Fallback, ...]:
    """Draw up to two fallbacks, good and bad ones."""
    found = []
    for place in range(draw(st.integers(0, 2))):
        on = draw(st.sampled_from([tuple(ErrorClass), ("L3_transient", "L4_persistent")]))
        how: dict[str, Any] = {"on": tuple(map(ErrorClass, on))}
        choice = draw(st.sampled_from(["value", "function", "acts", "raises", "answers badly"]))
        served = ["fallback", place]
        if choice == "value":
            found.append(Fallback(value=served, name="value", **how))
        elif choice in ("function", "acts"):
            effects = "unsafe" if choice == "acts" else "none"
            found.append(Fallback(_Serve(served), name=choice, effects=effects, **how))
        else:
            bad = _raises if choice == "raises" else _answers_badly
            found.append(Fallback(bad, name="bad", **how))
    return tuple(found)


class _Serve:
    """A fallback that gives a list of its own."""

    def __init__(self, value: list[Any]) -> None:
        self._value = value

    def __call__(self) -> list[Any]:
        return list(self._value)


RETRIES: Final = st.builds(
    Retry,
    attempts=st.integers(1, 5),
    wait_initial=st.sampled_from([0.0, 0.25, 1.0]),
    wait_max=st.sampled_from([1.0, 4.0]),
    budget=st.sampled_from([None, 1.0, 3.0, 30.0]),
    semantic=st.booleans(),
)
BREAKERS: Final = st.builds(
    Breaker,
    failure_ratio=st.sampled_from([0.3, 0.5, 1.0]),
    minimum_throughput=st.integers(2, 4),
    sampling_duration=st.just(1e8),
    break_duration=st.sampled_from([0.5, 2.0, 8.0]),
    half_open_probes=st.integers(1, 2),
    scope=st.sampled_from(["attempt", "call"]),
    also_counts=st.sampled_from([(), ("L5_semantic",), ("L2_access", "L5_semantic")]).map(
        lambda names: tuple(map(ErrorClass, names))
    ),
)

SLOW_BREAKERS: Final = st.builds(
    Breaker,
    failure_ratio=st.sampled_from([0.5, 1.0]),
    minimum_throughput=st.integers(2, 4),
    sampling_duration=st.just(1e8),
    break_duration=st.sampled_from([0.5, 2.0]),
    half_open_probes=st.integers(1, 2),
    scope=st.sampled_from(["attempt", "call"]),
    slow_call_seconds=st.sampled_from([TICK / 2, 0.3]),
    slow_call_ratio=st.sampled_from([0.4, 1.0]),
)

LIMITS: Final = st.builds(
    Limit,
    # What comes one after the other only finds a slot taken that a late thread holds.
    concurrency=st.sampled_from([None, 1, 2]),
    rate=st.sampled_from([0.25, 0.5, 2.0]),
    burst=st.sampled_from([None, 1, 2]),
    wait=st.sampled_from([0.0, 0.75, 5.0]),
    queue=st.sampled_from([0, 10, 10]),
)
FEEDBACKS: Final = st.builds(
    Feedback,
    st.just(print),  # the stage puts the scenario's own in its place
    corrections=st.integers(1, 3),
    on=st.sampled_from([("L1_input", "L5_semantic"), ("L5_semantic",)]).map(
        lambda names: tuple(map(ErrorClass, names))
    ),
)
POLLS: Final = st.builds(
    Poll,
    st.just(print),
    interval=st.sampled_from([0.25, 0.5]),
    interval_max=st.sampled_from([0.5, 2.0]),
    timeout=st.sampled_from([1.25, 20.0]),
    faults=st.integers(0, 2),
)
CHECKS: Final = st.lists(
    st.builds(
        Check,
        st.sampled_from(["pending", "pending", "pending longer", "500", "429 later", "401"]),
        took=st.sampled_from([0.0, 0.0, TICK, _LONG]),
    ),
    max_size=4,
).map(tuple)
BUDGETS: Final = st.builds(
    Budget, retries=st.sampled_from([None, 0, 2, 4]), requests=st.sampled_from([3, 6, 12])
)
BOUNDS: Final = st.builds(
    Bounds,
    budget=st.none() | BUDGETS | BUDGETS,
    timeout=st.sampled_from([None, None, 2.5, 6.0]),
    turn_timeout=st.sampled_from([None, None, 0.75, 3.25]),
)
REPAIRS: Final = st.builds(
    Repair,
    st.sampled_from(["corrects", "corrects", "gives up", "raises"]),
    took=st.sampled_from([0.0, TICK, 20 * TICK]),
)

CACHES: Final = st.builds(
    Cache, ttl=st.sampled_from([0.1875, 1.0]), stale=st.sampled_from([0.0, 3.0, 50.0])
)


@st.composite
def policies(draw: st.DrawFn, form: Form) -> Policy | None:
    """Draw a policy that goes with a form of function; None for a tool that is only observed."""
    if draw(st.integers(0, 7)) == 0:
        return None
    timeout = draw(st.sampled_from([None, None, 0.5, 1.0])) if form != "generator" else None
    fallback = draw(fallbacks())
    validation = draw(st.sampled_from([None, Validation(non_empty=True)]))
    effects: Any = draw(st.sampled_from(["none", "idempotent", "unsafe"]))
    switches: list[Any] = [(), ("rate_limited",)] if fallback else [()]
    if fallback and validation:
        switches.append(("empty", "rate_limited"))
    may_cache = form in ("function", "coroutine") and effects != "unsafe"
    return Policy(
        retry=draw(st.none() | RETRIES | RETRIES),
        breaker=draw(st.none() | BREAKERS | BREAKERS | SLOW_BREAKERS),
        limit=draw(st.none() | st.none() | LIMITS),
        timeout=timeout,
        budget=draw(st.sampled_from([None, None, None, 1.5, 3.0])),
        fallback=fallback,
        switch_on=draw(st.sampled_from(switches)),
        cache=draw(st.none() | CACHES) if may_cache else None,
        validation=validation,
        feedback=draw(st.none() | FEEDBACKS),
        poll=draw(st.none() | st.none() | POLLS) if form in ("function", "coroutine") else None,
        effects=effects,
    )


@st.composite
def palettes(draw: st.DrawFn, form: Form) -> list[str]:
    """Draw the few things that go wrong in one history, so that they come in rows."""
    kinds = [k for k in KINDS if form in ("coroutine", "async generator") or "outside" not in k]
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    return [*chosen, *["good"] * draw(st.integers(0, 2)), draw(st.sampled_from(_PASSING))]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Draw a tool and its history."""
    form = draw(st.sampled_from(FORMS))
    policy = draw(policies(form))
    bounds = draw(st.none() | st.none() | BOUNDS)
    is_limited = policy is not None and (policy.timeout is not None or policy.budget is not None)
    polls = policy is not None and policy.poll is not None
    step = st.builds(
        Step,
        kind=st.sampled_from(draw(palettes(form))),
        took=st.sampled_from([*_QUICK, _LONG] if is_limited and form != "generator" else _QUICK),
        items=st.sampled_from([0, 0, 1, 2]),
        stubborn=st.sampled_from([0.0, TICK]),
        checks=CHECKS if polls else st.just(()),
    )
    call = st.builds(
        Call,
        steps=st.lists(step, min_size=1, max_size=4),
        pause=st.sampled_from([0.0, 0.25, 2.0]),
        leaves_after=st.sampled_from([None, None, 1, 2]),
    )
    return Scenario(
        form,
        draw(st.sampled_from(PATHS)),
        policy,
        draw(st.lists(call, min_size=3, max_size=8)),
        draw(st.sampled_from([0.0, 0.5, 1.0])),
        bounds,
        draw(REPAIRS) if policy is not None and policy.feedback is not None else None,
        form in ("function", "coroutine") and draw(st.booleans()),
    )
