"""When to stop calling."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fuseboard.conventions import ErrorClass
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import (
    MAX_SECONDS,
    check_choice,
    check_choices,
    check_int,
    check_number,
    check_plain,
    check_positive,
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
        slow_call_seconds: Above how many seconds an attempt, failed or not, counts as slow; None
            for never. Of a stream, the time to its first item counts.
        slow_call_ratio: Share of slow attempts that opens the breaker too; above 0, at most 1.
        key: Makes one breaker for each text or number that it returns, of the bound arguments by
            name (of a method, ``self`` too): the account or host that calls share, say. It is
            shown in telemetry, so it must be no secret.
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
    slow_call_seconds: float | None = None
    slow_call_ratio: float = 1.0
    key: Callable[[Mapping[str, Any]], object] | None = None
    also_counts: Collection[ErrorClass] = ()

    def __post_init__(self) -> None:
        for name in ("failure_ratio", "slow_call_ratio"):
            check_number("Breaker", name, getattr(self, name), 0, 1)
            if getattr(self, name) == 0:
                raise ConfigurationError(f"Breaker({name}=0): must be above 0, at most 1")
        check_int("Breaker", "minimum_throughput", self.minimum_throughput, 1, 1_000_000)
        check_int("Breaker", "half_open_probes", self.half_open_probes, 1, 100)
        # Shorter slices of a window than the clock can tell apart would hold nothing.
        check_number("Breaker", "sampling_duration", self.sampling_duration, 0.01, MAX_SECONDS)
        check_positive("Breaker", "break_duration", self.break_duration, is_optional=False)
        check_positive("Breaker", "probe_lease", self.probe_lease)
        check_positive("Breaker", "slow_call_seconds", self.slow_call_seconds)
        check_plain("Breaker", "key", self.key, "a function of the bound arguments")
        check_choice("Breaker", "scope", self.scope, ("attempt", "call"))
        countable = (ErrorClass.L2_ACCESS, ErrorClass.L5_SEMANTIC)
        check_choices("Breaker", "also_counts", self.also_counts, countable)
        if self.minimum_throughput == 1:
            warnings.warn("Breaker(minimum_throughput=1) opens at the first failure", stacklevel=4)
