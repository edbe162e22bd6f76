"""The table of budgets: one row per tool and objective, each number with its way to the calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.budgets import SHOWN, WINDOWS, thresholds
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window

PAGES: Final = {"availability": "errors", "latency": "latency", "correctness": "errors"}
"""Where the calls of an objective are shown."""

_LONGEST: Final = timedelta(days=365)


def kind_words(kind: str) -> str:
    """Return an objective's name."""
    return {
        "availability": t("Availability"), "latency": t("Latency"), "correctness": t("Correctness"),
    }[kind]  # fmt: skip


def state_words(state: str) -> str:
    """Return what a state means, in a word or two."""
    return {
        "fast": t("Burning fast"), "gone": t("Budget gone"), "slow": t("Burning"),
        "fine": t("Within budget"), "few": t("Too few calls"),
    }[state]  # fmt: skip


def outlook(row: Any) -> str:
    """Return what becomes of a budget at the rate of the last hour, in words."""
    if row.state == "few":
        return t("no verdict: not one bad call is allowed yet")
    if row.left <= 0:
        return t("spent {factor} of it", factor=theme.factor(1 - row.left))
    if row.seconds_left == row.seconds_left:
        left = timedelta(seconds=min(row.seconds_left, _LONGEST.total_seconds()))
        return t("gone in {time} at this rate", time=theme.span(left))
    if row.burn_1h != row.burn_1h:
        return t("no calls in the last hour")
    if row.burn_1h > 1:
        return t("too few bad calls to tell how long it lasts")
    return t("lasts at this rate")


def table(view: View, period: Window, rows: Iterable[Any]) -> str:
    """Return the table as markup.

    Args:
        view: For filters, objectives and zone.
        period: What budgets are of.
        rows: Of :func:`~fuseboard_dashboard.budgets.budgets`.
    """
    limits = thresholds(view.source.objectives.period)
    burns = [(t("{window} (> {limit}×)", window=_spaced(name), limit=f"{limits[name]:.3g}"), True)
             for name in SHOWN]  # fmt: skip
    headers = [
        (t("State"), False), (t("Tool"), False), (t("Objective"), False), (t("Achieved"), True),
        (t("Budget left"), False), *burns,
    ]  # fmt: skip
    return markup.table(headers, (_cells(view, period, row, limits) for row in rows))


def _spaced(name: str) -> str:
    return f"{name[:-1]} {'min' if name[-1] == 'm' else name[-1]}"


def _cells(view: View, period: Window, row: Any, limits: dict[str, float]) -> list[str]:
    own = replace(view.filters.narrowed(tool=row.tool), classes=())  # as its numbers are
    mark = theme.BUDGET_MARKS[row.state]
    state = markup.badge(mark, state_words(row.state), loud=row.state == "fast")
    return [
        f'<span data-testid="fb-budget" {_hooks(row)}>{state}</span>',
        markup.link(markup.name(row.tool), own.link("slos")),
        f'{markup.esc(kind_words(row.kind))}<small class="fb-below">{_asked(view, row)}</small>',
        _achieved(own, period, row),
        _left(row),
        *(_burn(own, period, row, name, limits[name]) for name in SHOWN),
    ]


def _hooks(row: Any) -> str:
    pairs = {
        "tool": row.tool, "kind": row.kind, "state": row.state, "total": row.total, "bad": row.bad,
        "left": row.left, "target": row.target,
    }  # fmt: skip
    return " ".join(f'data-{key}="{markup.esc(value)}"' for key, value in pairs.items())


def _asked(view: View, row: Any) -> str:
    share = theme.share(row.target)
    if row.kind != "latency":
        return f"≥ {markup.esc(share)}"
    bound = view.source.objectives.of(row.tool).latency_seconds
    words = t("{share} within {time}", share=share, time=theme.seconds(bound))
    return f"≥ {markup.esc(words)}"


def _achieved(own: Filters, period: Window, row: Any) -> str:
    estimated = "≈ " if row.kind == "latency" else ""
    words = t("{bad} bad of {calls}", bad=theme.count(_whole(row)), calls=theme.count(row.total))
    href = own.zoomed(period).link(PAGES[row.kind])
    title = t("estimated from a histogram: see below") if estimated else f"{row.bad:g}"
    return (
        f"{estimated}{theme.share(row.achieved)}"
        f'<small class="fb-below" title="{markup.esc(title)}">'
        f"{markup.link(markup.esc(words), href)}</small>"
    )


def _whole(row: Any) -> float:
    bad = float(row.bad)
    return round(bad) if row.kind == "latency" else bad


def _left(row: Any) -> str:
    mark = theme.BUDGET_MARKS[row.state]
    width = 100 * min(1.0, max(0.0, row.left))
    shown = theme.NOTHING if row.state == "few" else _percent(row.left)
    return (
        f'<span class="fb-budget" style="--c:{mark.colour}">'
        f'<span class="fb-budget-bar"><span style="width:{width:.1f}%"></span></span>'
        f"<b>{markup.esc(shown)}</b></span>"
        f'<small class="fb-below">{markup.esc(outlook(row))}</small>'
    )


def _percent(left: float) -> str:
    return theme.percent(left) if left >= 0 else f"{max(left, -99.99) * 100:.0f} %"


def _burn(own: Filters, period: Window, row: Any, name: str, limit: float) -> str:
    rate = getattr(row, f"burn_{name}")
    if rate != rate:
        return f'<span class="fb-mute" title="{markup.esc(t("no calls"))}">{theme.NOTHING}</span>'
    bad = getattr(row, f"bad_{name}")
    window = Window(period.until - WINDOWS[name], period.until)
    title = n("{count} bad call", "{count} bad calls", round(bad))
    flag = '<span class="fb-flag">▲</span>' if rate > limit else ""
    tone = "fb-over" if rate > limit else ""
    shown = f'<span class="{tone}" title="{markup.esc(title)}">{flag}{_rate(rate)}</span>'
    return markup.link(shown, own.zoomed(window).link(PAGES[row.kind]))


def _rate(rate: float) -> str:
    if rate == 0:
        return "0"
    if rate < 0.1:
        return "< 0.1×"
    return f"{rate:.1f}×" if rate < 99.95 else f"{rate:,.0f}×"
