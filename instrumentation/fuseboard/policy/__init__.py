"""What guards a call: retry, breaker, limit, timeout, budget, cache, fallback, validation.

A policy decides and reports events into the call's record; it knows no OpenTelemetry.
"""

from fuseboard.policy.config import (
    Breaker,
    Budget,
    Cache,
    Fallback,
    Limit,
    Policy,
    Repeats,
    Retry,
    Validation,
)

__all__ = [
    "Breaker",
    "Budget",
    "Cache",
    "Fallback",
    "Limit",
    "Policy",
    "Repeats",
    "Retry",
    "Validation",
]
