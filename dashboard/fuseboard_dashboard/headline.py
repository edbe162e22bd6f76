"""Headline numbers, the same on every page: each defined once, with what changed."""

from __future__ import annotations

from collections.abc import Mapping

from fuseboard_dashboard import theme, thresholds
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.markup import Stat
from fuseboard_dashboard.theme import ratio

Totals = Mapping[str, float]
"""One row of ``page_totals``."""


def error_ratio(row: Totals) -> float | None:
    """Return (error + rejected, without L1) / (all − cancelled − abandoned − interrupted)."""
    return ratio(row["errors"], row["judged"])


def retry_ratio(row: Totals) -> float | None:
    """Return calls with at least one retry / calls that made an attempt."""
    return ratio(row["retried"], row["attempted"])


def amplification(row: Totals) -> float | None:
    """Return attempts / calls that made an attempt."""
    return ratio(row["attempts_made"], row["attempted"])


def degraded_ratio(row: Totals) -> float | None:
    """Return degraded calls / (all − cancelled − abandoned − interrupted)."""
    return ratio(row["degraded"], row["judged"])


def calls(row: Totals, before: Totals) -> Stat:
    """Return the number of calls."""
    return Stat("calls", "Calls", theme.count(row["calls"]), row["calls"],
                _change(row["calls"], before["calls"]),
                hint="Calls that ended in the window.")  # fmt: skip


def errors(row: Totals, before: Totals, filters: Filters) -> Stat:
    """Return the error rate."""
    now = error_ratio(row)
    tone = ""
    if now is not None and now > thresholds.ERROR_RATIO:
        tone = "bad" if now > thresholds.ERROR_RATIO_CRITICAL else "warn"
    note = _against(now, error_ratio(before), thresholds.ERROR_RATIO)
    if row["input_faults"]:
        note = f"+ {theme.count(row['input_faults'])} input faults"
    return Stat(
        "error-ratio", "Error rate", theme.percent(now), now, note, tone, filters.link("errors"),
        "(error + rejected, without L1 input faults) / (all − cancelled − abandoned − "
        f"interrupted); max {theme.limit(thresholds.ERROR_RATIO)}",
    )  # fmt: skip


def retries(row: Totals, before: Totals, filters: Filters) -> Stat:
    """Return the retry rate."""
    now = retry_ratio(row)
    tone = "bad" if now is not None and now > thresholds.RETRY_RATIO else ""
    note = _against(now, retry_ratio(before), thresholds.RETRY_RATIO)
    return Stat(
        "retry-ratio", "Retry rate", theme.percent(now), now, note,
        tone, filters.link("retries"),
        "calls with at least one retry / calls that made an attempt",
    )  # fmt: skip


def amplified(row: Totals, filters: Filters) -> Stat:
    """Return the amplification."""
    now = amplification(row)
    return Stat(
        "amplification", "Amplification", theme.factor(now), now, "attempts per call", "",
        filters.link("retries"), "attempts / calls that made an attempt",
    )  # fmt: skip


def degraded(row: Totals, filters: Filters) -> Stat:
    """Return the share of degraded calls."""
    now = degraded_ratio(row)
    return Stat(
        "degraded-ratio", "Degraded", theme.percent(now), now,
        f"{theme.count(row['degraded'])} calls", "", filters.link("degradation"),
        "calls answered with a stale entry, fallback or default / (all − cancelled − abandoned − "
        "interrupted)",
    )  # fmt: skip


def quantile(row: Totals, before: Totals, name: str, filters: Filters) -> Stat:
    """Return a latency quantile of calls, back-off included."""
    now = row[name]
    tone = "warn" if not theme.is_missing(now) and now > thresholds.SLOW_SECONDS else ""
    was = before[name]
    note = "" if theme.is_missing(was) else f"was {theme.seconds(was)}"
    return Stat(
        name, f"Latency {name}", theme.seconds(now), None if theme.is_missing(now) else now, note,
        tone, filters.link("latency"), f"exact {name} of calls, back-off included",
    )  # fmt: skip


def _change(now: float, was: float) -> str:
    if not was:
        return "none before"
    change = (now - was) / was
    if abs(change) < 0.005:
        return "as many as before"
    return f"{change:+.0%} vs. before" if abs(change) < 10 else f"was {theme.count(was)}"


def _against(now: float | None, was: float | None, most: float) -> str:
    line = f"max {theme.limit(most)}"
    return line if now is None or was is None else f"was {theme.percent(was)}, {line}"
