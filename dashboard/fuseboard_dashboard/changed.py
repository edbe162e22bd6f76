"""The panel that tells what changed, in sentences that lead to the calls behind them."""

from __future__ import annotations

from datetime import UTC
from typing import Final

import pandas as pd

from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.changes import MEASURES, Change, changes
from fuseboard_dashboard.filters import Filters, rfc3339
from fuseboard_dashboard.slices import Cells
from fuseboard_dashboard.view import View

MOST_CALLS: Final = 1_000_000
"""So many take the store 0.7 s of its processors; more could not be sliced between refreshes."""

TREND_BUCKETS: Final = 30
"""As the board's sparklines have, so that both share an answer."""

LEAST_BUCKETS: Final = 4
SURE_SHOWN: Final = 6
CHANCE_SHOWN: Final = 2
_PAGES: Final = {"errors": "errors", "retries": "retries", "slow": "latency"}
_MARKS: Final = {
    "errors": theme.mark(theme.OUTCOME_MARKS, "error"),
    "retries": theme.CLASS_MARKS["L3_transient"],
    "slow": theme.QUANTILE_MARKS["p95"],
}
_SYMBOLS: Final = {"errors": "✖", "retries": "↻", "slow": "◔"}
_RATES: Final = {
    "errors": "of calls fail", "retries": "of calls are retried",
    "slow": "of calls are slower than 19 of 20 were",
}  # fmt: skip
HINT: Final = (
    "Slices of calls that explain most of what rose against the window before, the most telling "
    "first."
)


def draw(view: View) -> str:
    """Return the panel's lines as markup.

    Args:
        view: Whose window is compared with the one before.
    """
    calls = view.totals()["calls"]
    if calls > MOST_CALLS:
        return _quiet(too_many())
    frame, against = compared(view)
    if frame is None:
        return _quiet(nothing_before())
    cells = Cells(frame)
    found = [change for measure in MEASURES for change in changes(cells, measure)]
    sure = sorted((c for c in found if c.is_sure), key=lambda c: -c.score)[:SURE_SHOWN]
    chance = sorted((c for c in found if not c.is_sure), key=lambda c: -c.score)[:CHANCE_SHOWN]
    lines = [_line(view, change) for change in sure]
    if not sure:
        lines.append(_quiet("Nothing rose by more than chance explains.", "fb-no-change"))
    if chance:
        lines.append('<div class="fb-change-rest">Rose as well, which may be chance:</div>')
        lines += [_line(view, change) for change in chance]
    if against:
        lines.append(f'<div class="fb-change-rest">{markup.esc(against)}</div>')
    return f'<div class="fb fb-changes">{"".join(lines)}</div>'


def too_many() -> str:
    """Return why nothing is told where there are too many calls."""
    return (
        f"With up to {theme.count(MOST_CALLS)} calls in the window this tells which tool, "
        "region, argument, agent, service or upstream explains a rise: choose a shorter time."
    )


def nothing_before() -> str:
    """Return why nothing is told of the first calls."""
    return "There were no calls before: nothing to compare with."


def compared(view: View) -> tuple[pd.DataFrame | None, str]:
    """Return what the store counted, and against what where it is not the window before.

    On an agent's first minutes there is none: the window is compared with its own first half.
    """
    frame = view.ask("page_changes", **view.filters.before_parameters(view.window))
    if frame["calls_before"].sum():
        return frame, ""
    trend = view.buckets("page_trend", view.axis(TREND_BUCKETS))
    if len(trend) and trend["bucket"].nunique() >= LEAST_BUCKETS:
        first = max(trend["bucket"].min().to_pydatetime().replace(tzinfo=UTC), view.window.since)
        middle = first + (view.window.until - first) / 2
        bounds = {
            "since": rfc3339(middle), "before_since": rfc3339(first),
            "before_until": rfc3339(middle),
        }  # fmt: skip
        words = (
            f"No calls before this window: since {view.clock(middle)} against the time until then."
        )
        return view.ask("page_changes", **bounds), words
    return None, ""


def _quiet(words: str, testid: str = "fb-change-none") -> str:
    return f'<div class="fb fb-quiet" data-testid="{testid}">{markup.esc(words)}</div>'


def _line(view: View, change: Change) -> str:
    mark = _MARKS[change.measure.id]
    before = "" if change.before is None else f", {theme.percent(change.before)} before"
    if change.before is None:
        before = ", no calls before"
    share = f"{theme.percent(round(change.share, 2))} of the rise"
    more = f"{theme.count(round(change.excess))} more {change.measure.noun} than usual, {share}"
    mostly = ""
    if change.mostly and "error_class" not in change.where:
        mostly = f" · mostly {markup.badge(theme.mark(theme.CLASS_MARKS, change.mostly))}"
    href = link(view.filters, change)
    quiet = "" if change.is_sure else " is-chance"
    return (
        f'<div class="fb-change{quiet}" style="--c:{mark.colour}" {_hooks(change)}>'
        f'<span class="fb-symbol" title="{markup.esc(change.measure.noun)}">'
        f"{_SYMBOLS[change.measure.id]}</span>"
        f"<div><div>{markup.link(_where(change), href)}{mostly}</div>"
        f"<p><b>{theme.percent(change.rate)}</b> {_RATES[change.measure.id]}{markup.esc(before)}"
        f" · {markup.esc(more)}</p></div></div>"
    )


def _where(change: Change) -> str:
    """Return what the slice's calls share, the tool first."""
    where = change.where
    parts = ["Errors everywhere:"] if set(where) == {"error_class"} else []
    if "tool" in where:
        parts.append(f"<b>{markup.name(where['tool'])}</b>")
    if "region" in where:
        parts.append(f"in <b>{markup.name(where['region'])}</b>")
    if "args_hash" in where:
        title = markup.esc(where["args_hash"][:100])
        shown = markup.esc(markup.shorten(where["args_hash"], 13))
        parts.append(f'with arguments <b class="fb-mono" title="{title}">{shown}</b>')
    for name, words in (("agent", "of agent"), ("service", "of service"), ("upstream", "at")):
        if name in where:
            parts.append(f"{words} <b>{markup.name(where[name])}</b>")
    if "error_class" in where:
        parts.append(markup.badge(theme.mark(theme.CLASS_MARKS, where["error_class"])))
    return " ".join(parts)


def link(filters: Filters, change: Change) -> str:
    """Return the address of the page that shows the calls of a slice."""
    where = change.where
    own = filters.narrowed(
        tool=where.get("tool"), region=where.get("region"), error_class=where.get("error_class")
    )
    extra = [("hash", where["args_hash"])] if "args_hash" in where else []
    return own.link("errors" if extra else _PAGES[change.measure.id], extra)


def _hooks(change: Change) -> str:
    values = {
        "measure": change.measure.id, **{k.replace("_", "-"): v for k, v in change.where.items()},
        "rate": change.rate, "before": "" if change.before is None else change.before,
        "events": change.events, "share": change.share,
    }  # fmt: skip
    pairs = " ".join(f'data-{key}="{markup.esc(value)}"' for key, value in values.items())
    return f'data-testid="fb-change" {pairs}'
