"""How calls of a tool are guarded, all in all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from fuseboard.conventions import Effects
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.breaker import Breaker
from fuseboard.policy.config.cache import Cache
from fuseboard.policy.config.checks import check_choices, check_plain, check_positive, set_enum
from fuseboard.policy.config.fallback import Fallback
from fuseboard.policy.config.feedback import Feedback
from fuseboard.policy.config.limit import Limit
from fuseboard.policy.config.poll import Poll
from fuseboard.policy.config.retry import Retry
from fuseboard.policy.config.validation import Validation

SWITCHES: Final = ("rate_limited", "empty")
_PARTS: Final = {
    "retry": Retry,
    "breaker": Breaker,
    "limit": Limit,
    "cache": Cache,
    "validation": Validation,
    "feedback": Feedback,
    "poll": Poll,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How calls of a tool are guarded; what is not given does not act.

    Outermost first: fallback, cache, total budget, retry, breaker, limit, attempt timeout,
    validation.

    Attributes:
        retry: When to try again.
        breaker: When to stop calling.
        limit: How many attempts run at once, and how often one begins.
        timeout: Seconds for one attempt. An async tool is cancelled in its own task. A sync
            tool runs in a worker thread with a copy of the caller's context variables; Python
            can't stop a thread, so on a time-out it is left behind and its late result is
            discarded. For an async generator it bounds the wait for each item.
        budget: Seconds for the whole call, back-off included; an attempt is cut short to it.
        fallback: What to serve instead, in this order; a bare function is short for
            ``Fallback(function)``.
        switch_on: What makes the call switch to a fallback, or to a stale answer of the cache, at
            once, without the retries that are left: ``rate_limited`` (HTTP 429) and ``empty``
            (an answer that ``Validation(non_empty=True)`` refuses).
        cache: For how long an answer is served again.
        validation: What an answer must satisfy.
        feedback: Who corrects the arguments of a request that can only fail again.
        poll: How to wait for the result, where the tool only submits a job.
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
    limit: Limit | None = None
    timeout: float | None = None
    budget: float | None = None
    fallback: tuple[Fallback | Callable[..., Any], ...] | Fallback | Callable[..., Any] = ()
    switch_on: Collection[Literal["rate_limited", "empty"]] = ()
    cache: Cache | None = None
    validation: Validation | None = None
    feedback: Feedback | None = None
    poll: Poll | None = None
    effects: Effects | Literal["none", "idempotent", "unsafe"] = Effects.UNSAFE
    idempotency_key: Callable[[Mapping[str, object]], str] | None = None

    def __post_init__(self) -> None:
        for name, cls in _PARTS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, cls):
                raise ConfigurationError(
                    f"Policy({name}={value!r}): must be a fuseboard.{cls.__name__} or None"
                )
        check_positive("Policy", "timeout", self.timeout)
        check_positive("Policy", "budget", self.budget)
        set_enum(self, "effects", Effects)
        check_plain("Policy", "idempotency_key", self.idempotency_key)
        object.__setattr__(self, "fallback", _as_fallbacks(self.fallback))
        self._check_switch()
        self._check_cache()
        if self.timeout is not None and self.budget is not None and self.timeout > self.budget:
            warnings.warn(
                f"Policy(timeout={self.timeout!r}) is longer than the whole call's budget "
                f"({self.budget!r}) and will never be reached",
                stacklevel=3,
            )

    def _check_switch(self) -> None:
        check_choices("Policy", "switch_on", self.switch_on, SWITCHES)
        shown = f"Policy(switch_on={self.switch_on!r})"
        is_stale_served = self.cache is not None and self.cache.stale > 0
        if self.switch_on and not self.fallbacks and not is_stale_served:
            raise ConfigurationError(f"{shown}: there is nothing to switch to; add a fallback")
        refuses_empty = self.validation is not None and self.validation.non_empty
        if "empty" in self.switch_on and not refuses_empty:
            raise ConfigurationError(
                f"{shown}: an empty answer is a good one unless validation refuses it; add "
                "validation=Validation(non_empty=True)"
            )

    def _check_cache(self) -> None:
        cache = self.cache
        if cache is not None and self.effects is Effects.UNSAFE and not cache.allow_unsafe:
            raise ConfigurationError(
                f"Policy(cache=..., effects={str(self.effects)!r}): an answer from the cache would "
                "leave out what the tool does; say effects='none' of a tool that only reads, or "
                "Cache(allow_unsafe=True)"
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
