"""Board: what is wrong now? One fuse per tool and region, sorted by trouble."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import alerting, changed, headline, markup, theme, thresholds
from fuseboard_dashboard.charts.sparkline import sparkline
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, has_calls, show
from fuseboard_dashboard.trouble import TROUBLED, Fuse, fuses
from fuseboard_dashboard.view import View, panel

CARDS: Final = 60
"""Fuses drawn in full; the calmer rest becomes one line each, so that hundreds stay usable."""
LINES: Final = 1000
MOST_READ: Final = 2000
"""Rows of ``page_tools`` at most."""
UNGUARDED: Final = 20
"""Unguarded tools listed, those with most errors."""
_LINES_OF_ALERTS: Final = 4
_ALERTS_SHOWN: Final = 2


def page() -> None:
    """Draw the page; alerts fire and breakers are open in a window without calls, too."""
    show(PageFrame(t("Board"), t("What is wrong now?"), _body, needs_calls=False))


def _body(view: View) -> None:
    active = pd.DataFrame()
    found: list[Fuse] = []
    with panel():
        active = view.ask("page_alerts_now")
        st.html(alerting.scale_notice(view) or "<span></span>")
        if len(active):
            st.html(alerting.strip(view, active, _LINES_OF_ALERTS))
    with panel():
        found = fuses(view.ask("page_tools"), view.ask("page_breaker_states"), active)
        if found or view.totals()["calls"]:
            st.html(markup.stats(_headline(view, found)))
    if not view.totals()["calls"]:
        with panel():
            if found:
                _fuses(view, found)
        has_calls(view)
        return
    has_calls(view)
    # Weighing slices takes longer than all the rest: who waits sees fuses meanwhile.
    changes = st.container()
    with panel():
        _fuses(view, found)
    with changes, panel(t("What changed"), changed.hint()):
        st.html(changed.draw(view))
    with panel():
        _unguarded(view)


def _headline(view: View, found: Sequence[Fuse]) -> list[markup.Stat]:
    row = view.totals()
    before = view.before().totals()
    open_now = [f for f in found if f.state in (BreakerState.OPEN, BreakerState.ISOLATED)]
    return [
        headline.calls(row, before),
        headline.errors(row, before, view.filters),
        headline.retries(row, before, view.filters),
        headline.amplified(row, view.filters),
        headline.degraded(row, view.filters),
        headline.quantile(row, before, "p99", view.filters),
        markup.Stat(
            "open-breakers", t("Breakers open"), str(len(open_now)), len(open_now),
            t("in any process"), "bad" if open_now else "", view.filters.link("breakers"),
            t("fuses whose breaker is open or isolated in at least one process"),
        ),
    ]  # fmt: skip


def _fuses(view: View, found: Sequence[Fuse]) -> None:
    troubled = sum(fuse.level in TROUBLED for fuse in found)
    few = sum(fuse.level == "few" for fuse in found)
    sentences = [
        t("Fuses (one tool in one region each): {count}, in trouble: {troubled}, worst first.",
          count=len(found), troubled=troubled),
    ]  # fmt: skip
    if few:
        sentences.append(t("Grey: {few} with fewer than {least} calls to judge.", few=few,
                           least=thresholds.ERRORS.minimum_calls))  # fmt: skip
    sentences.append(t("Red bars: errors."))
    if len(found) >= MOST_READ:
        sentences.append(t("Only the {count} with most errors are read: filter by tool for others.",
                           count=f"{MOST_READ:,}"))  # fmt: skip
    wanted = ""
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.html(markup.section(t("Fuses"), " ".join(sentences)))
    if len(found) > 8:
        wanted = right.text_input(
            t("Find a fuse"), key="fb_find", placeholder=t("Find by tool or region"),
            label_visibility="collapsed", icon=":material/search:",
        )  # fmt: skip
    shown = [f for f in found if wanted.casefold() in f"{f.tool} {f.region}".casefold()]
    if not shown:
        st.html(markup.quiet(t("No fuse has that in its name.")))
        return
    trends = _trends(view)
    cards = "".join(_card(view, fuse, trends) for fuse in shown[:CARDS])
    st.html(f'<div class="fb fb-fuses">{cards}</div>')
    rest = shown[CARDS : CARDS + LINES]
    if rest:
        st.html(markup.section(n("{count} calmer fuse", "{count} calmer fuses", len(rest))))
        st.html(f'<div class="fb fb-tiles">{"".join(_tile(view, fuse) for fuse in rest)}</div>')


def _unguarded(view: View) -> None:
    frame = view.ask("page_unguarded_tools")
    if not len(frame):
        return
    st.html(
        markup.section(
            t("Unguarded tools ({count})", count=len(frame)),
            t(
                "Only other instrumentation tells of these: they are seen, but no retry, breaker "
                "or fallback of fuseboard acts on them. @fuseboard.tool or an adapter changes that."
            ),
        )
    )
    headers = (
        (t("Tool"), False),
        (t("Seen through"), False),
        (t("Calls"), True),
        (t("Error rate"), True),
        (t("Last call"), True),
    )
    rows = [
        [
            _unguarded_name(view, row.tool),
            markup.name(row.frameworks or theme.NOTHING),
            theme.count(row.calls),
            markup.link(theme.percent(row.error_ratio), _own(view, row.tool).link("errors")),
            view.clock(row.last_end),
        ]
        for row in rows_of(frame.head(UNGUARDED))
    ]
    st.html(markup.table(headers, rows))
    if len(frame) > UNGUARDED:
        st.caption(t("The {shown} with most errors of {all}.", shown=UNGUARDED, all=len(frame)))


def _own(view: View, tool: str) -> Filters:
    return view.filters.narrowed(tool=tool)


def _unguarded_name(view: View, tool: str) -> str:
    return (
        f'<span data-testid="fb-unguarded" data-tool="{markup.esc(tool)}">'
        f"{markup.link(markup.name(tool), _own(view, tool).link('tool'))}</span>"
    )


_Trends = dict[tuple[str, str], tuple[list[float], list[float]]]


def _trends(view: View) -> _Trends:
    axis = view.axis(changed.TREND_BUCKETS)
    frame = view.buckets("page_trend", axis)
    places = {moment: place for place, moment in enumerate(axis.grid())}
    size = len(places)
    found: _Trends = defaultdict(lambda: ([0.0] * size, [0.0] * size))
    for row in rows_of(frame):
        place = places.get(pd.Timestamp(row.bucket))
        if place is not None:
            calls, errors = found[row.tool, row.region]
            calls[place], errors[place] = row.calls, row.errors
    return found


def _card(view: View, fuse: Fuse, trends: _Trends) -> str:
    accent = _accent(fuse)
    calls, errors = trends.get((fuse.tool, fuse.region), ([], []))
    own = view.filters.narrowed(tool=fuse.tool, region=fuse.region)
    pill = markup.breaker(fuse.state, _age(view, fuse), loud=fuse.level == "tripped")
    if fuse.state is not None:
        pill = markup.link(pill, own.link("breakers"))
    region = markup.esc(markup.shorten(fuse.region, 40))
    number = n("{count} call", "{shown} calls", round(fuse.calls), shown=theme.count(fuse.calls))
    return (
        f'<div class="fb-fuse is-{fuse.level}" style="--c:{accent.colour}" {_hooks(fuse)}>'
        f'<div class="fb-fuse-top">{markup.link(markup.name(fuse.tool), own.link("tool"))}'
        f'{pill}</div><div class="fb-fuse-sub"><span>{region}</span>'
        f"<span>{markup.esc(number)}</span></div>{_notes(view, fuse)}"
        f'<div class="fb-gauges">{_gauges(fuse, own.link)}</div>'
        f"{sparkline(calls, errors)}</div>"
    )


def _accent(fuse: Fuse) -> theme.Mark:
    """Return what colours a fuse: its breaker unless that is closed, else its level."""
    if fuse.state in (None, BreakerState.CLOSED):
        return theme.LEVEL_MARKS[fuse.level]
    if fuse.level in ("failing", "strained") and fuse.state == theme.UNKNOWN_STATE:
        return theme.LEVEL_MARKS[fuse.level]
    return theme.mark(theme.STATE_MARKS, fuse.state)


def _age(view: View, fuse: Fuse) -> str:
    calm = (BreakerState.CLOSED, theme.UNKNOWN_STATE)
    return "" if fuse.state in calm or fuse.since is None else view.ago(fuse.since)


def _notes(view: View, fuse: Fuse) -> str:
    """Return why a fuse is not green beyond its numbers: alerts, input faults, too few calls."""
    parts = []
    for firing in fuse.alerts[:_ALERTS_SHOWN]:
        mark = theme.mark(theme.SEVERITY_MARKS, firing.severity)
        href = alerting.link_to_cause(firing.alert, fuse.tool, fuse.region, view.filters)
        words = f"{mark.symbol} {firing.alert}"
        title = t("{severity} alert, firing for {span}",
                  severity=mark.label, span=view.ago(firing.since))  # fmt: skip
        parts.append(
            f'<span class="fb-fuse-alert" style="--c:{mark.colour}" title="{markup.esc(title)}">'
            f"{markup.link(markup.esc(words), href)}</span>"
        )
    if len(fuse.alerts) > _ALERTS_SHOWN:
        more = n("+ {count} alert", "+ {count} alerts", len(fuse.alerts) - _ALERTS_SHOWN)
        parts.append(f"<span>{markup.esc(more)}</span>")
    if fuse.input_faults:
        hint = t("L1: the request itself was wrong; neither an error of the tool nor a success")
        words = t("input faults {count}", count=theme.count(fuse.input_faults))
        parts.append(f'<span title="{markup.esc(hint)}">{markup.esc(words)}</span>')
    if fuse.only_fails:
        parts.append(f"<span>{markup.esc(t('no call succeeded'))}</span>")
    elif fuse.level == "few":
        hint = t("the error alert judges {least} calls or more",
                 least=thresholds.ERRORS.minimum_calls)  # fmt: skip
        words = markup.esc(t("too few calls to judge"))
        parts.append(f'<span title="{markup.esc(hint)}">{words}</span>')
    return f'<div class="fb-fuse-notes">{"".join(parts)}</div>' if parts else ""


def _gauges(fuse: Fuse, link: Callable[[str], str]) -> str:
    success = "is-bad" if fuse.is_failing else ""
    if not success and (fuse.is_erring or fuse.only_fails):
        success = "is-warn"
    judged = t(
        "judged calls that neither failed nor had a faulty input / all − cancelled − abandoned − "
        "interrupted; degraded and partial answers count as success"
    )
    items = (
        (t("Success"), theme.percent(fuse.success_ratio), success, "errors", judged),
        (t("Retries"), theme.percent(fuse.retry_ratio), "is-bad" if fuse.is_retrying else "",
         "retries", ""),
        ("p99", theme.seconds(fuse.p99), "is-warn" if fuse.is_slow else "", "latency", ""),
        (t("Degraded"), theme.percent(fuse.degraded_ratio), "", "errors", ""),
    )  # fmt: skip
    cells = []
    for title, text, tone, where, definition in items:
        flag = '<span class="fb-flag">▲</span>' if tone else ""
        value = markup.link(f"{flag}{markup.esc(text)}", link(where))
        hint = f' title="{markup.esc(definition)}"' if definition else ""
        cells.append(
            f'<div{hint}><div class="fb-label">{markup.esc(title)}</div>'
            f'<div class="fb-value {tone}">{value}</div></div>'
        )
    return "".join(cells)


def _hooks(fuse: Fuse) -> str:
    values = {
        "tool": fuse.tool, "region": fuse.region, "state": fuse.state or "",
        "level": fuse.level, "alerts": " ".join(firing.alert for firing in fuse.alerts),
        "calls": fuse.calls, "errors": fuse.errors, "judged": fuse.judged,
        "input-faults": fuse.input_faults,
        "retried": fuse.retried, "attempted": fuse.attempted, "degraded": fuse.degraded,
        "p99": "" if fuse.p99 is None else fuse.p99,
    }  # fmt: skip
    pairs = " ".join(f'data-{key}="{markup.esc(value)}"' for key, value in values.items())
    return f'data-testid="fb-fuse" {pairs}'


def _tile(view: View, fuse: Fuse) -> str:
    mark = _accent(fuse)
    own = view.filters.narrowed(tool=fuse.tool, region=fuse.region)
    name = markup.link(markup.name(f"{fuse.tool} · {fuse.region}"), own.link("tool"))
    return (
        f'<div class="fb-tile" style="--c:{mark.colour}" {_hooks(fuse)}>'
        f'<span class="fb-symbol" title="{mark.label}">{mark.symbol}</span>{name}'
        f'<span class="fb-quiet">{theme.percent(fuse.success_ratio)}</span></div>'
    )
