"""The alerts that fuseboard ships: the only place where a threshold or a window is written.

Windows are over the END of calls. Every rule has a page in ``alerts/runbooks/``.
"""

from __future__ import annotations

from typing import Final

from fuseboard.conventions import (
    METRIC_ATTEMPTED_CALLS,
    METRIC_BREAKER_STATE,
    METRIC_BUILD_INFO,
    METRIC_CALL_DURATION,
    METRIC_CALLS,
    BreakerState,
    ErrorClass,
    Outcome,
    RetryEnd,
)
from fuseboard_alerts.model import (
    HOUR,
    MINUTE,
    Absent,
    Ratio,
    Rule,
    Selector,
    Severity,
    SlowShare,
    StateFor,
)

JUDGED_CALLS: Final = Selector(
    METRIC_CALLS,
    (
        (
            "outcome",
            "!~",
            f"{Outcome.CANCELLED}|{Outcome.ABANDONED}|{Outcome.INTERRUPTED}",
        ),
    ),
)
"""All calls but those that the caller ended itself: the denominator of the error rate."""


def _errors(above: float) -> Ratio:
    return Ratio(
        query="alert_error_ratio",
        subject="failed_calls",
        population="judged_calls",
        events=Selector(
            METRIC_CALLS,
            (
                ("outcome", "=~", f"{Outcome.ERROR}|{Outcome.REJECTED}"),
                ("error_class", "!=", ErrorClass.L1_INPUT),
            ),
        ),
        calls=JUDGED_CALLS,
        window=5 * MINUTE,
        above=above,
        minimum_calls=20,
        minimum_events=5,
    )


_ERROR_DESCRIPTION: Final = (
    "{value} of the calls of {tool} in {region} (job {job}) failed over the last 5 minutes, "
    "errors of the request itself (L1) not counted."
)

CATALOGUE: Final[tuple[Rule, ...]] = (
    Rule(
        name="ToolCallTelemetryAbsent",
        severity=Severity.WARNING,
        condition=Absent("alert_telemetry_absent", METRIC_BUILD_INFO, lookback=5 * MINUTE),
        hold=15 * MINUTE,
        keep_firing=0,
        summary="No agent process reports its tool calls any more.",
        description=(
            "No process has reported to fuseboard for more than 15 minutes; every other alert is "
            "blind until it does."
        ),
    ),
    Rule(
        name="ToolCallErrorRatioHigh",
        severity=Severity.WARNING,
        condition=_errors(above=0.05),
        hold=5 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="A tool fails more than 5 % of its calls.",
        description=_ERROR_DESCRIPTION,
    ),
    Rule(
        name="ToolCallErrorRatioHigh",
        severity=Severity.CRITICAL,
        condition=_errors(above=0.20),
        hold=2 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="A tool fails more than 20 % of its calls.",
        description=_ERROR_DESCRIPTION,
    ),
    Rule(
        name="ToolCallSemanticErrorsHigh",
        severity=Severity.WARNING,
        condition=Ratio(
            query="alert_semantic_ratio",
            subject="semantically_wrong_calls",
            population="judged_calls",
            events=Selector(METRIC_CALLS, (("error_class", "=", ErrorClass.L5_SEMANTIC),)),
            calls=JUDGED_CALLS,
            window=HOUR,
            above=0.005,
            minimum_calls=200,
            minimum_events=3,
        ),
        hold=5 * MINUTE,
        keep_firing=0,
        summary="A tool answers, but more than 0.5 % of its answers are unusable.",
        description=(
            "{value} of the calls of {tool} in {region} (job {job}) were answered with something "
            "unusable (L5) over the last hour, whether or not it was handled."
        ),
    ),
    Rule(
        name="ToolCallSlow",
        severity=Severity.WARNING,
        condition=SlowShare(
            query="alert_slow_share",
            subject="slow_calls",
            population="timed_calls",
            metric=METRIC_CALL_DURATION,
            slower_than=5.0,
            window=15 * MINUTE,
            above=0.01,
            minimum_calls=100,
            minimum_events=5,
        ),
        hold=5 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="More than 1 % of a tool's calls take longer than 5 s.",
        description=(
            "{value} of the calls of {tool} in {region} (job {job}) took longer than 5 s over the "
            "last 15 minutes, back-off included."
        ),
    ),
    Rule(
        name="ToolCallRetryRateHigh",
        severity=Severity.WARNING,
        condition=Ratio(
            query="alert_retry_rate",
            subject="retried_calls",
            population="attempted_calls",
            events=Selector(METRIC_ATTEMPTED_CALLS, (("retry", "!=", RetryEnd.NONE),)),
            calls=Selector(METRIC_ATTEMPTED_CALLS),
            window=5 * MINUTE,
            above=0.05,
            minimum_calls=20,
            minimum_events=3,
        ),
        hold=2 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="More than 5 % of a tool's calls need a retry.",
        description=(
            "{value} of the calls of {tool} in {region} (job {job}) that reached the tool needed "
            "at least one retry over the last 5 minutes."
        ),
    ),
    Rule(
        name="ToolCallBreakerOpen",
        severity=Severity.CRITICAL,
        condition=StateFor(
            query="alert_breaker_open",
            metric=METRIC_BREAKER_STATE,
            states=(BreakerState.OPEN, BreakerState.HALF_OPEN),
            window=MINUTE,
        ),
        hold=2 * MINUTE,
        keep_firing=0,
        summary="A tool's circuit breaker has not closed again.",
        description=(
            "A circuit breaker of {tool} in {region} (job {job}) has been open or half open for "
            "more than 2 minutes in at least one process; its calls are rejected or degraded."
        ),
    ),
)
"""Every shipped rule, ordered availability, errors, duration, resilience."""


def rule_names() -> tuple[str, ...]:
    """Return the names of the shipped alerts, each once, sorted."""
    return tuple(sorted({rule.name for rule in CATALOGUE}))
