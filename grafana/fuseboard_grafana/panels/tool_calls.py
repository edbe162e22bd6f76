"""Panels about tool calls: rate, errors, duration and resilience.

Ratios guard their denominator, so that a quiet tool leaves a gap instead of NaN. The lines that
are drawn are the thresholds of the alert catalogue.
"""

from __future__ import annotations

from typing import Final

from fuseboard.conventions import (
    DURATION_BUCKETS,
    METRIC_ATTEMPTED_CALLS,
    METRIC_ATTEMPTS,
    METRIC_BREAKER_STATE,
    METRIC_BREAKER_TRANSITIONS,
    METRIC_CALL_DURATION,
    METRIC_CALLS,
    NO_ERROR,
    BreakerState,
    Outcome,
    RetryEnd,
)
from fuseboard_alerts.catalogue import CATALOGUE, JUDGED_CALLS
from fuseboard_alerts.model import Ratio, Severity, SlowShare
from fuseboard_grafana.panels.shapes import Frame, Json, Query, state_timeline, timeseries
from fuseboard_grafana.theme import (
    BREAKER_LEVELS,
    CLASS_COLOURS,
    COUNT,
    OUTCOME_COLOURS,
    PER_SECOND,
    RATIO,
    RATIO_STEP,
    RED,
    SECONDS,
    YELLOW,
)

_SCOPE: Final = 'job=~"$job",instance=~"$instance",tool=~"$tool",region=~"$region"'
_LINE_COLOURS: Final = {Severity.INFO: YELLOW, Severity.WARNING: YELLOW, Severity.CRITICAL: RED}
_TOOL_REGION: Final = "{{tool}} {{region}}"


def series(metric: str, *matchers: tuple[str, str, str]) -> str:
    """Select a metric's series within the choice made on the board."""
    own = "".join(f',{label}{operator}"{value}"' for label, operator, value in matchers)
    return f"{metric}{{{_SCOPE}{own}}}"


def _rate(by: str, selector: str) -> str:
    return f"sum by ({by}) (rate({selector}[$__rate_interval]))"


def _share(by: str, events: str, calls: str) -> str:
    return f"{_rate(by, events)}\n/ ({_rate(by, calls)} > 0)"


def _rule_lines(alert: str) -> list[tuple[float, str]]:
    return [
        (rule.condition.above, _LINE_COLOURS[rule.severity])
        for rule in CATALOGUE
        if rule.name == alert and isinstance(rule.condition, Ratio | SlowShare)
    ]


def _condition(alert: str) -> Ratio | SlowShare:
    return next(
        rule.condition
        for rule in CATALOGUE
        if rule.name == alert and isinstance(rule.condition, Ratio | SlowShare)
    )


def calls_timeseries() -> Json:
    """Calls per second, by tool."""
    frame = Frame(
        "Calls by tool", "Tool calls that ended, per second, in whatever outcome.", PER_SECOND
    )
    return timeseries(frame, [Query(_rate("tool", series(METRIC_CALLS)), "{{tool}}")])


def outcomes_timeseries() -> Json:
    """Calls per second, by outcome."""
    frame = Frame(
        "Calls by outcome",
        "How calls ended, per second. Rejected: not attempted, because a policy refused. "
        "Degraded: answered by a fallback or a stale entry.",
        PER_SECOND,
    )
    query = Query(_rate("outcome", series(METRIC_CALLS)), "{{outcome}}")
    return timeseries(frame, [query], colours=OUTCOME_COLOURS, is_stacked=True)


def errors_ratio_timeseries() -> Json:
    """Error rate by tool and region, with the alerts' lines."""
    condition = _condition("ToolCallErrorRatioHigh")
    assert isinstance(condition, Ratio)  # noqa: S101 - narrows for the type checker
    frame = Frame(
        "Error rate",
        "Failed and rejected calls over all calls that the caller let finish; faults of the "
        "request itself (L1) don't count. The lines are where ToolCallErrorRatioHigh begins: "
        "warning and critical.",
        RATIO,
        step=RATIO_STEP,
    )
    share = _share(
        "tool, region",
        series(condition.events.metric, *condition.events.matchers),
        series(JUDGED_CALLS.metric, *JUDGED_CALLS.matchers),
    )
    lines = _rule_lines("ToolCallErrorRatioHigh")
    return timeseries(frame, [Query(share, _TOOL_REGION)], lines=lines)


def errors_by_class_timeseries() -> Json:
    """Faulty calls per second, by error class."""
    frame = Frame(
        "Faults by class",
        "Calls that met a fault, per second, handled or not. L1: the request; L2: access and "
        "quota; L3: passes by itself; L4: stays until somebody acts; L5: answered, but unusable.",
        PER_SECOND,
    )
    faulty = series(METRIC_CALLS, ("error_class", "!=", NO_ERROR))
    return timeseries(
        frame,
        [Query(_rate("error_class", faulty), "{{error_class}}")],
        colours=CLASS_COLOURS,
        is_stacked=True,
    )


def latency_timeseries() -> Json:
    """Latency quantiles of calls, with exemplars."""
    frame = Frame(
        "Latency of calls",
        "What callers waited, back-off included; estimated from buckets, so off by up to one "
        f"bucket. A line at {DURATION_BUCKETS[-1]:g} s means longer than the last bucket. Points "
        "are exemplars: each leads to a trace.",
        SECONDS,
    )
    buckets = _rate("le", series(f"{METRIC_CALL_DURATION}_bucket"))
    queries = [
        # Without calls the quantile is NaN; the comparison leaves a gap instead.
        Query(f"histogram_quantile({quantile:g}, {buckets}) >= 0", name, exemplars=name == "p99")
        for quantile, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
    ]
    return timeseries(frame, queries)


def slow_share_timeseries() -> Json:
    """Share of calls over the alert's bound, by tool and region."""
    condition = _condition("ToolCallSlow")
    assert isinstance(condition, SlowShare)  # noqa: S101 - narrows for the type checker
    bound = condition.slower_than
    frame = Frame(
        f"Slower than {bound:g} s",
        f"Share of calls that took longer than {bound:g} s. The line is where ToolCallSlow begins.",
        RATIO,
        step=RATIO_STEP,
    )
    by = "tool, region"
    count = series(f"{METRIC_CALL_DURATION}_count")
    fast = series(f"{METRIC_CALL_DURATION}_bucket", ("le", "=", repr(bound)))
    share = f"1 - ({_share(by, fast, count)})"
    lines = _rule_lines("ToolCallSlow")
    return timeseries(frame, [Query(share, _TOOL_REGION)], lines=lines)


def retry_rate_timeseries() -> Json:
    """Retry rate by tool and region, with the 5 % line."""
    frame = Frame(
        "Retry rate",
        "Calls with at least one retry over calls that reached the tool. The line is where "
        "ToolCallRetryRateHigh begins.",
        RATIO,
        step=RATIO_STEP,
    )
    share = _share(
        "tool, region",
        series(METRIC_ATTEMPTED_CALLS, ("retry", "!=", RetryEnd.NONE)),
        series(METRIC_ATTEMPTED_CALLS),
    )
    lines = _rule_lines("ToolCallRetryRateHigh")
    return timeseries(frame, [Query(share, _TOOL_REGION)], lines=lines)


def amplification_timeseries() -> Json:
    """Attempts per call, by tool."""
    frame = Frame(
        "Attempts per call",
        "Attempts over calls that reached the tool: 1 is no retry at all; the load on an "
        "upstream is this many times what agents ask for.",
        COUNT,
        step=RATIO_STEP,
    )
    share = _share("tool", series(METRIC_ATTEMPTS), series(METRIC_ATTEMPTED_CALLS))
    return timeseries(frame, [Query(share, "{{tool}}")])


def degraded_share_timeseries() -> Json:
    """Share of calls answered by a fallback or a stale entry, by tool and region."""
    frame = Frame(
        "Degraded share",
        "Calls answered by a fallback, a default or a stale entry because the live call failed "
        "or was rejected, over all calls that the caller let finish.",
        RATIO,
        step=RATIO_STEP,
        width=24,
    )
    share = _share(
        "tool, region",
        series(METRIC_CALLS, ("outcome", "=", Outcome.DEGRADED)),
        series(JUDGED_CALLS.metric, *JUDGED_CALLS.matchers),
    )
    return timeseries(frame, [Query(share, _TOOL_REGION)])


def breaker_state_timeline() -> Json:
    """Worst state of each tool's and region's breakers over all processes."""
    frame = Frame(
        "Circuit breakers",
        "The worst state of the breakers of each tool and region, over all chosen processes.",
        COUNT,
        width=24,
        height=9,
    )
    states = "\nor ".join(
        f"({series(METRIC_BREAKER_STATE, ('state', '=', state))} == 1) * {level}"
        for level, state, _ in reversed(BREAKER_LEVELS)
    )
    query = Query(f"max by (tool, region) (\n{states}\n)", _TOOL_REGION)
    levels = [(level, state.replace("_", " "), colour) for level, state, colour in BREAKER_LEVELS]
    return state_timeline(frame, [query], levels)


def breaker_opened_expression() -> str:
    """Return the query whose values mark the opening of a breaker."""
    opened = series(METRIC_BREAKER_TRANSITIONS, ("to_state", "=", BreakerState.OPEN))
    return f"sum by (tool, region, breaker) (increase({opened}[$__rate_interval])) > 0"


def breaker_closed_expression() -> str:
    """Return the query whose values mark the closing of a breaker."""
    closed = series(METRIC_BREAKER_TRANSITIONS, ("to_state", "=", BreakerState.CLOSED))
    return f"sum by (tool, region, breaker) (increase({closed}[$__rate_interval])) > 0"
