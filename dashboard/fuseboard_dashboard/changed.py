"""The panel that tells what changed, in sentences that lead to the calls behind them."""

from __future__ import annotations

from datetime import UTC
from typing import Final

import pandas as pd

from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.changes import MEASURES, Change, changes
from fuseboard_dashboard.filters import Filters, rfc3339
from fuseboard_dashboard.language import t
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


def hint() -> str:
    """Return what the panel is about."""
    return t("Slices of calls that explain most of what rose against the window before, the most "
             "telling first.")  # fmt: skip


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
        lines.append(_quiet(t("Nothing rose by more than chance explains."), "fb-no-change"))
    if chance:
        words = markup.esc(t("Rose as well, which may be chance:"))
        lines.append(f'<div class="fb-change-rest">{words}</div>')
        lines += [_line(view, change) for change in chance]
    if against:
        lines.append(f'<div class="fb-change-rest">{markup.esc(against)}</div>')
    return f'<div class="fb fb-changes">{"".join(lines)}</div>'


def too_many() -> str:
    """Return why nothing is told where there are too many calls."""
    return t(
        "With up to {most} calls in the window this tells which tool, region, argument, agent, "
        "service or upstream explains a rise: choose a shorter time.",
        most=theme.count(MOST_CALLS),
    )


def nothing_before() -> str:
    """Return why nothing is told of the first calls."""
    return t("There were no calls before: nothing to compare with.")


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
        words = t("No calls before this window: since {moment} against the time until then.",
                  moment=view.clock(middle))  # fmt: skip
        return view.ask("page_changes", **bounds), words
    return None, ""


def _quiet(words: str, testid: str = "fb-change-none") -> str:
    return f'<div class="fb fb-quiet" data-testid="{testid}">{markup.esc(words)}</div>'


def _line(view: View, change: Change) -> str:
    mark = _MARKS[change.measure.id]
    if change.before is None:
        before = t("no calls before")
    else:
        before = t("{rate} before", rate=theme.percent(change.before))
    more = t(
        "{excess} more {noun} than usual, {share} of the rise",
        excess=theme.count(round(change.excess)), noun=change.measure.noun(),
        share=theme.percent(round(change.share, 2)),
    )  # fmt: skip
    mostly = ""
    if change.mostly and "error_class" not in change.where:
        badge = markup.badge(theme.mark(theme.CLASS_MARKS, change.mostly))
        mostly = " · " + t("mostly {error_class}", error_class=badge)
    href = link(view.filters, change)
    quiet = "" if change.is_sure else " is-chance"
    return (
        f'<div class="fb-change{quiet}" style="--c:{mark.colour}" {_hooks(change)}>'
        f'<span class="fb-symbol" title="{markup.esc(change.measure.noun())}">'
        f"{_SYMBOLS[change.measure.id]}</span>"
        f"<div><div>{markup.link(_where(change), href)}{mostly}</div>"
        f"<p>{_rate(change)}, {markup.esc(before)} · {markup.esc(more)}</p></div></div>"
    )


def _rate(change: Change) -> str:
    rate = f"<b>{theme.percent(change.rate)}</b>"
    if change.measure.id == "errors":
        return t("{rate} of calls fail", rate=rate)
    if change.measure.id == "retries":
        return t("{rate} of calls are retried", rate=rate)
    return t("{rate} of calls are slower than 19 of 20 were", rate=rate)


def _where(change: Change) -> str:
    """Return what the slice's calls share, the tool first."""
    where = change.where
    parts = [t("Errors everywhere:")] if set(where) == {"error_class"} else []
    if "tool" in where:
        parts.append(_bold(where["tool"]))
    if "region" in where:
        parts.append(t("in {region}", region=_bold(where["region"])))
    if "args_hash" in where:
        title = markup.esc(where["args_hash"][:100])
        shown = markup.esc(markup.shorten(where["args_hash"], 13))
        hash_ = f'<b class="fb-mono" title="{title}">{shown}</b>'
        parts.append(t("with arguments {hash}", hash=hash_))
    if "agent" in where:
        parts.append(t("of agent {agent}", agent=_bold(where["agent"])))
    if "service" in where:
        parts.append(t("of service {service}", service=_bold(where["service"])))
    if "upstream" in where:
        parts.append(t("at {upstream}", upstream=_bold(where["upstream"])))
    if "error_class" in where:
        parts.append(markup.badge(theme.mark(theme.CLASS_MARKS, where["error_class"])))
    return " ".join(parts)


def _bold(name: str) -> str:
    return f"<b>{markup.name(name)}</b>"


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
