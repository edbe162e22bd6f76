"""Headline numbers, the same on every page: each defined once, with what changed."""

from __future__ import annotations

from collections.abc import Mapping

from fuseboard_dashboard import theme, thresholds
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.language import n, t
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
    return Stat("calls", t("Calls"), theme.count(row["calls"]), row["calls"],
                _change(row["calls"], before["calls"]),
                hint=t("Calls that ended in the window."))  # fmt: skip


def errors(row: Totals, before: Totals, filters: Filters) -> Stat:
    """Return the error rate."""
    now = error_ratio(row)
    tone = ""
    if now is not None and now > thresholds.ERROR_RATIO:
        tone = "bad" if now > thresholds.ERROR_RATIO_CRITICAL else "warn"
    note = _against(now, error_ratio(before), thresholds.ERROR_RATIO)
    if row["input_faults"]:
        note = t("+ {count} input faults", count=theme.count(row["input_faults"]))
    return Stat(
        "error-ratio", t("Error rate"), theme.percent(now), now, note, tone, filters.link("errors"),
        t("(error + rejected, without L1 input faults) / (all − cancelled − abandoned − "
          "interrupted); max {limit}", limit=theme.limit(thresholds.ERROR_RATIO)),
    )  # fmt: skip


def retries(row: Totals, before: Totals, filters: Filters) -> Stat:
    """Return the retry rate."""
    now = retry_ratio(row)
    tone = "bad" if now is not None and now > thresholds.RETRY_RATIO else ""
    note = _against(now, retry_ratio(before), thresholds.RETRY_RATIO)
    return Stat(
        "retry-ratio", t("Retry rate"), theme.percent(now), now, note,
        tone, filters.link("retries"),
        t("calls with at least one retry / calls that made an attempt"),
    )  # fmt: skip


def amplified(row: Totals, filters: Filters) -> Stat:
    """Return the amplification."""
    now = amplification(row)
    return Stat(
        "amplification", t("Amplification"), theme.factor(now), now, t("attempts per call"), "",
        filters.link("retries"), t("attempts / calls that made an attempt"),
    )  # fmt: skip


def degraded(row: Totals, filters: Filters) -> Stat:
    """Return the share of degraded calls."""
    now = degraded_ratio(row)
    return Stat(
        "degraded-ratio",
        t("Degraded"),
        theme.percent(now),
        now,
        n(
            "{count} call",
            "{shown} calls",
            round(row["degraded"]),
            shown=theme.count(row["degraded"]),
        ),
        "",
        filters.link("degradation"),
        t(
            "calls answered with a stale entry, fallback or default / (all − cancelled − abandoned "
            "− interrupted)"
        ),
    )


def quantile(row: Totals, before: Totals, name: str, filters: Filters) -> Stat:
    """Return a latency quantile of calls, back-off included."""
    now = row[name]
    tone = "warn" if not theme.is_missing(now) and now > thresholds.SLOW_SECONDS else ""
    was = before[name]
    note = "" if theme.is_missing(was) else t("was {value}", value=theme.seconds(was))
    return Stat(
        name,
        t("Latency {quantile}", quantile=name),
        theme.seconds(now),
        None if theme.is_missing(now) else now,
        note,
        tone,
        filters.link("latency"),
        t("exact {quantile} of calls, back-off included", quantile=name),
    )


def _change(now: float, was: float) -> str:
    if not was:
        return t("none before")
    change = (now - was) / was
    if abs(change) < 0.005:
        return t("as many as before")
    if abs(change) < 10:
        return t("{change} vs. before", change=f"{change:+.0%}")
    return t("was {value}", value=theme.count(was))


def _against(now: float | None, was: float | None, most: float) -> str:
    line = t("max {limit}", limit=theme.limit(most))
    if now is None or was is None:
        return line
    return t("was {value}, {limit}", value=theme.percent(was), limit=line)
