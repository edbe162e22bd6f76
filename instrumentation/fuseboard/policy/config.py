"""What a policy may say, with the defaults; checked when it is written, not when it is needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from fuseboard.conventions import Confidence, Effects, ErrorClass, ResultSource
from fuseboard.errors import ConfigurationError

MAX_ATTEMPTS: Final = 100
MAX_SECONDS: Final = 1e9
"""About 32 years; a bound because no clock can wait for 1e300 s."""


class _NoValue:
    """Stands for a fallback value that was not given, since None is a value."""

    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE: Final = _NoValue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Try again after a fault that is expected to pass, with full jitter.

    Before retry ``n`` (from 0) a call waits a random time, uniform in
    ``[0, min(wait_max, wait_initial * 2**n)]``; a ``Retry-After`` of the server wins.

    Attributes:
        attempts: Most attempts in all, the first included; 1 to 100.
        wait_initial: Bound of the first wait, seconds; at least 0.
        wait_max: Bound of every wait, seconds; at least ``wait_initial``.
        budget: Seconds from the start of the call after which no attempt begins; None for no
            bound. An attempt that runs is not cut short (see ``Policy.budget``).
        semantic: Whether an unusable answer (``L5_semantic``) is retried as well.

    Since 0.1.
    """

    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 30.0
    budget: float | None = 30.0
    semantic: bool = False

    def __post_init__(self) -> None:
        _check_int("Retry", "attempts", self.attempts, 1, MAX_ATTEMPTS)
        _check_number("Retry", "wait_initial", self.wait_initial, 0, MAX_SECONDS)
        _check_number("Retry", "wait_max", self.wait_max, 0, MAX_SECONDS)
        _check_positive("Retry", "budget", self.budget)
        _check_bool("Retry", "semantic", self.semantic)
        if self.wait_max < self.wait_initial:
            raise ConfigurationError(
                f"Retry(wait_max={self.wait_max!r}): must be at least wait_initial "
                f"({self.wait_initial!r})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Stop calling a tool that keeps failing, one breaker per tool, region and upstream.

    Attributes:
        failure_ratio: Share of failures that opens the breaker; above 0, at most 1.
        minimum_throughput: Attempts in the window below which it never opens; at least 1.
        sampling_duration: Length of the sliding window, seconds.
        break_duration: Seconds that it stays open before it lets a probe pass.
        half_open_probes: Probes admitted at a time, and successes needed to close; 1 to 100.
        scope: ``attempt`` judges every attempt, ``call`` judges whole calls after retries.
        probe_lease: Seconds after which a probe that has not ended no longer blocks the next
            one; None for ``break_duration``.
        also_counts: Of ``L2_access`` and ``L5_semantic``, those that count as failures too.

    Since 0.1.
    """

    failure_ratio: float = 0.5
    minimum_throughput: int = 20
    sampling_duration: float = 60.0
    break_duration: float = 60.0
    half_open_probes: int = 1
    scope: Literal["attempt", "call"] = "attempt"
    probe_lease: float | None = None
    also_counts: Collection[ErrorClass] = ()

    def __post_init__(self) -> None:
        _check_number("Breaker", "failure_ratio", self.failure_ratio, 0, 1)
        if self.failure_ratio == 0:
            raise ConfigurationError("Breaker(failure_ratio=0): must be above 0, at most 1")
        _check_int("Breaker", "minimum_throughput", self.minimum_throughput, 1, 1_000_000)
        _check_int("Breaker", "half_open_probes", self.half_open_probes, 1, 100)
        for name in ("sampling_duration", "break_duration"):
            _check_positive("Breaker", name, getattr(self, name), is_optional=False)
        _check_positive("Breaker", "probe_lease", self.probe_lease)
        _check_choice("Breaker", "scope", self.scope, ("attempt", "call"))
        countable = (ErrorClass.L2_ACCESS, ErrorClass.L5_SEMANTIC)
        _check_choices("Breaker", "also_counts", self.also_counts, countable)
        if self.minimum_throughput == 1:
            warnings.warn("Breaker(minimum_throughput=1) opens at the first failure", stacklevel=4)


@dataclass(frozen=True, slots=True)
class Fallback:
    """Something to serve instead when the live call failed or was rejected.

    Attributes:
        function: Called with the tool's own arguments; async only for an async tool.
        value: A static value instead; dicts, lists and sets are copied for each call.
        name: What the record says was served; default the function's name.
        source: ``fallback``, ``cache`` or ``default``; default ``fallback`` for a function,
            ``default`` for a value.
        confidence: How far to trust it; default ``medium`` for a function, ``low`` for a value.
        on: The classes of fault that it is served for; default all but ``L1_input``, which the
            caller has to correct.
        effects: What calling the function does to the world. One that is ``unsafe`` (sends the
            same mail by another provider, say) is passed over when the live call may have taken
            effect although it failed.

    Since 0.1.
    """

    function: Callable[..., Any] | None = None
    value: Any = NO_VALUE
    name: str | None = None
    source: ResultSource | None = None
    confidence: Confidence | None = None
    on: Collection[ErrorClass] = tuple(c for c in ErrorClass if c is not ErrorClass.L1_INPUT)
    effects: Effects | Literal["none", "idempotent", "unsafe"] = Effects.NONE

    def __post_init__(self) -> None:
        has_value = self.value is not NO_VALUE
        if self.function is None and not has_value:
            raise ConfigurationError("Fallback(): must be given a function, or value=...")
        if self.function is not None and has_value:
            raise ConfigurationError(
                f"Fallback(function={self.function!r}, value={self.value!r}): must be given only "
                "one of them"
            )
        if self.function is not None and not callable(self.function):
            raise ConfigurationError(
                f"Fallback(function={self.function!r}): must be callable; for a static value "
                "write Fallback(value=...)"
            )
        _set_enum(self, "effects", Effects)
        default_source = ResultSource.DEFAULT if has_value else ResultSource.FALLBACK
        _set_enum(self, "source", ResultSource, default_source)
        if self.source is ResultSource.LIVE:
            raise ConfigurationError("Fallback(source='live'): a fallback is never live")
        default_confidence = Confidence.LOW if has_value else Confidence.MEDIUM
        _set_enum(self, "confidence", Confidence, default_confidence)
        _check_choices("Fallback", "on", self.on, list(ErrorClass))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise ConfigurationError(f"Fallback(name={self.name!r}): must be a text, or None")
        if self.name is None:
            name = getattr(self.function, "__name__", None) or "default"
            object.__setattr__(self, "name", str(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What an answer must satisfy to be of use.

    A refused answer is a fault of class ``L5_semantic``; if no fallback stands in for it, the
    caller gets :class:`fuseboard.InvalidResultError`.

    Attributes:
        non_empty: Whether None, blank text, an empty container or a stream without items is an
            unusable answer.

    Since 0.1.
    """

    non_empty: bool = False

    def __post_init__(self) -> None:
        _check_bool("Validation", "non_empty", self.non_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How calls of a tool are guarded; what is not given does not act.

    Outermost first: fallback, total budget, retry, breaker, attempt timeout, validation.

    Attributes:
        retry: When to try again.
        breaker: When to stop calling.
        timeout: Seconds for one attempt. An async tool is cancelled in its own task. A sync
            tool runs in a worker thread with a copy of the caller's context variables; Python
            can't stop a thread, so on a time-out it is left behind and its late result is
            discarded. For an async generator it bounds the wait for each item.
        budget: Seconds for the whole call, back-off included; an attempt is cut short to it.
        fallback: What to serve instead, in this order; a bare function is short for
            ``Fallback(function)``.
        validation: What an answer must satisfy.
        effects: ``none`` (only reads), ``idempotent`` (running twice equals running once) or
            ``unsafe``. After a fault that leaves open whether the tool took effect, an unsafe
            tool is not tried again.
        idempotency_key: Makes a key from the bound arguments. With it an unsafe tool may be
            retried after such a fault, because the tool hands ``current_call().idempotency_key``
            to the server, which then acts once.

    Since 0.1.
    """

    retry: Retry | None = None
    breaker: Breaker | None = None
    timeout: float | None = None
    budget: float | None = None
    fallback: tuple[Fallback, ...] | Fallback | Callable[..., Any] = ()
    validation: Validation | None = None
    effects: Effects | Literal["none", "idempotent", "unsafe"] = Effects.UNSAFE
    idempotency_key: Callable[[Mapping[str, object]], str] | None = None

    def __post_init__(self) -> None:
        for name, cls in (("retry", Retry), ("breaker", Breaker), ("validation", Validation)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, cls):
                raise ConfigurationError(
                    f"Policy({name}={value!r}): must be a fuseboard.{cls.__name__} or None"
                )
        _check_positive("Policy", "timeout", self.timeout)
        _check_positive("Policy", "budget", self.budget)
        _set_enum(self, "effects", Effects)
        if self.idempotency_key is not None and not callable(self.idempotency_key):
            raise ConfigurationError(
                f"Policy(idempotency_key={self.idempotency_key!r}): must be a function"
            )
        object.__setattr__(self, "fallback", _as_fallbacks(self.fallback))
        if self.timeout is not None and self.budget is not None and self.timeout > self.budget:
            warnings.warn(
                f"Policy(timeout={self.timeout!r}) is longer than the whole call's budget "
                f"({self.budget!r}) and will never be reached",
                stacklevel=3,
            )

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """The fallbacks, in order."""
        return self.fallback  # type: ignore[return-value]  # made a tuple above

    @property
    def may_repeat(self) -> bool:
        """Whether running the tool twice does no harm."""
        return self.effects is not Effects.UNSAFE or self.idempotency_key is not None


def _as_fallbacks(given: object) -> tuple[Fallback, ...]:
    found = given if isinstance(given, tuple | list) else (given,)
    return tuple(_as_fallback(one) for one in found)


def _as_fallback(given: object) -> Fallback:
    if isinstance(given, Fallback):
        return given
    if callable(given):
        return Fallback(given)
    raise ConfigurationError(
        f"Policy(fallback={given!r}): must be a function or a fuseboard.Fallback, or a tuple of "
        "them; for a static value write Fallback(value=...)"
    )


def _check_number(owner: str, name: str, value: object, low: float, high: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:  # type: ignore[operator]
        raise ConfigurationError(
            f"{owner}({name}={value!r}): must be a number from {low:g} to {high:g}"
        )


def _check_positive(owner: str, name: str, value: object, *, is_optional: bool = True) -> None:
    if value is None and is_optional:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_SECONDS:  # type: ignore[operator]
        suffix = ", or None" if is_optional else ""
        raise ConfigurationError(
            f"{owner}({name}={value!r}): must be a number of seconds above 0{suffix}, "
            f"at most {MAX_SECONDS:g}"
        )


def _check_int(owner: str, name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigurationError(f"{owner}({name}={value!r}): must be an int from {low} to {high}")


def _check_choice(owner: str, name: str, value: object, choices: Collection[str]) -> None:
    if value not in choices:
        shown = ", ".join(repr(str(choice)) for choice in choices)
        raise ConfigurationError(f"{owner}({name}={value!r}): must be one of {shown}")


def _check_choices(owner: str, name: str, values: object, choices: Collection[str]) -> None:
    # A text is a collection as well: of its letters.
    if isinstance(values, str) or not isinstance(values, Collection):
        raise ConfigurationError(
            f"{owner}({name}={values!r}): must be a collection, such as a list"
        )
    for value in values:
        _check_choice(owner, name, value, choices)


def _check_bool(owner: str, name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{owner}({name}={value!r}): must be a bool")


def _set_enum(owner: object, name: str, enum: type[StrEnum], default: object = None) -> None:
    value = getattr(owner, name)
    if value is None:
        value = default
    _check_choice(type(owner).__name__, name, value, list(enum))
    object.__setattr__(owner, name, enum(value))
