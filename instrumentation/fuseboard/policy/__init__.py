"""What guards a call: retry, breaker, limit, timeout, cache, fallback, validation, feedback, poll.

A policy decides and reports events into the call's record; it knows no OpenTelemetry.
"""

from fuseboard.policy.config import (
    Breaker,
    Budget,
    Cache,
    Fallback,
    Feedback,
    Limit,
    Mistake,
    Pending,
    Policy,
    Poll,
    Repeats,
    Retry,
    Validation,
)

__all__ = [
    "Breaker",
    "Budget",
    "Cache",
    "Fallback",
    "Feedback",
    "Limit",
    "Mistake",
    "Pending",
    "Policy",
    "Poll",
    "Repeats",
    "Retry",
    "Validation",
]
