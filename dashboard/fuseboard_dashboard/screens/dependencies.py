"""Dependencies: who depends on which upstream, and what does its trouble reach?"""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import impact, markup, theme
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.charts import dependencies as charts
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.dependencies import Fate, Node, graph, held, shared_fates
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.view import View, panel

MOST_ROWS: Final = 100
MOST_NAMES: Final = 8
STRETCHES: Final = 12
"""Into how many stretches the window is cut to see what fails at once."""
WHOLE_ANSWER: Final = 20_000
"""Rows of ``page_dependencies`` at most."""


def page() -> None:
    """Draw the page."""
    words = t("Who depends on what, and what does the trouble of one upstream reach?")
    show(PageFrame(t("Dependencies"), words, _body))


def _body(whole: View) -> None:
    view, note = bounded(whole)
    if note:
        st.html(markup.notice(note, theme.SEVERITY_MARKS["info"], "fb-bounded"))
    frame = view.ask("page_dependencies")
    caller = st.query_params.get("caller")
    if caller is not None and not (frame["caller"] == caller).any():
        caller = None
    shown = frame if caller is None else frame[frame["caller"] == caller]
    if len(frame) >= WHOLE_ANSWER:
        words = t("There are more; these are the {count} with the most errors and calls.",
                  count=f"{WHOLE_ANSWER:,}")  # fmt: skip
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-cut"))
    states = view.ask("page_breaker_states")
    upstream = _chosen(frame)
    words = t(
        "Width = calls; dashed red and ✖ = more errors than the alert lets pass; ○ = a breaker is "
        "not closed. A node leads to what is behind it."
    )
    with panel(t("From agents over tools to upstreams"), words):
        _fates(view)
        _only(view, caller)
        st.html(charts.draw(graph(shown, held(states)), _address(view, caller), upstream))
    with panel():
        _untold(view, frame)
    if upstream is not None:
        impact.draw(view, upstream, frame, states)
    with panel(t("The same as a table"), t("Worst first.")):
        _table(view, shown)


def _chosen(frame: pd.DataFrame) -> str | None:
    """Return the upstream to tell of: the one in the URL, or the worst."""
    known = frame[frame["upstream"].notna()]
    wanted = st.query_params.get("upstream")
    if wanted is not None and (known["upstream"] == wanted).any():
        return wanted
    sums = known.groupby("upstream")[["errors", "calls"]].sum()
    worst = sums.sort_values(["errors", "calls"], ascending=False, kind="stable")
    return str(worst.index[0]) if len(worst) else None


def _address(view: View, caller: str | None) -> charts.Address:
    kept = [] if caller is None else [("caller", caller)]

    def address(node: Node) -> str:
        if node.name is None:
            return ""
        if node.column == "tool":
            return view.filters.narrowed(tool=node.name).link("tool")
        if node.column == "caller":
            return view.filters.link("dependencies", [("caller", node.name)])
        return view.filters.link("dependencies", [*kept, ("upstream", node.name)])

    return address


def _only(view: View, caller: str | None) -> None:
    if caller is None:
        return
    words = t("Only calls of {name}.", name=markup.shorten(caller, 60))
    more = markup.link(f"<u>{markup.esc(t('Show all'))}</u>", view.filters.link("dependencies"))
    st.html(f'<div class="fb" data-testid="fb-narrowed">{markup.esc(words)} {more}</div>')


def _fates(view: View) -> None:
    axis = view.axis(STRETCHES)
    series = view.buckets("page_upstream_series", axis, upstream=None)
    for fate in shared_fates(series)[:3]:
        st.html(
            f'<div class="fb fb-notice" data-testid="fb-fate" '
            f'data-upstream="{markup.esc(fate.upstream)}" '
            f'data-region="{markup.esc(fate.region)}" data-together="{fate.together}" '
            f'data-failing="{fate.failing}" style="--c:{theme.ERROR_COLOUR}">'
            f'<span class="fb-symbol">✖</span><span class="fb-break">'
            f"{_sentence(view, fate, axis.bucket_label)}</span></div>"
        )


def _sentence(view: View, fate: Fate, stretch: str) -> str:
    """Return the sentence on a shared fate as markup."""
    href = view.filters.link("dependencies", [("upstream", fate.upstream)])
    words = t(
        "Shared fate: {tools} fail at the same time in {region}, and share an upstream. In "
        "{together} of {failing} stretches of {width} with a failing tool there, two or more fail. "
        "Look at the upstream first:",
        tools=_names(list(fate.tools)), region=markup.shorten(fate.region, 40),
        together=fate.together, failing=fate.failing, width=stretch,
    )  # fmt: skip
    return f"{markup.esc(words)} {markup.link(f'<u>{markup.name(fate.upstream)}</u>', href)}."


def _names(names: list[str]) -> str:
    shown = t(", ").join(markup.shorten(name, 40) for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return shown if more <= 0 else n("{names} and {count} more", "{names} and {count} more", more,
                                     names=shown)  # fmt: skip


def _untold(view: View, frame: pd.DataFrame) -> None:
    """Say which tools tell no upstream, and what sets it."""
    untold = frame[frame["upstream"].isna()]
    if not len(untold):
        return
    by_tool = untold.groupby("tool")["calls"].sum().sort_values(ascending=False, kind="stable")
    share = theme.ratio(float(untold["calls"].sum()), view.totals()["calls"])
    words = n(
        "{count} tool tells no upstream ({share} of calls): {names}. ",
        "{count} tools tell no upstream ({share} of calls): {names}. ",
        len(by_tool), share=theme.percent(share), names=_names(list(by_tool.index)),
    )  # fmt: skip
    words += t(
        'It is set by @fuseboard.tool(upstream="search-api"), and read from server.address of '
        "other instrumentation; without it nothing here can tell what a tool depends on."
    )
    st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-untold"))


def _table(view: View, frame: pd.DataFrame) -> None:
    headers = ((t("Agent or service"), False), (t("Tool"), False), (t("Upstream"), False),
               (t("Calls"), True), (t("Errors"), True), (t("Error rate"), True),
               (t("Degraded"), True), (t("Last"), True))  # fmt: skip
    rows = []
    for r in rows_of(frame.head(MOST_ROWS)):
        own = view.filters.narrowed(tool=r.tool)
        errors = theme.count(r.errors)
        rows.append(
            [
                _cell(r.caller, view.filters.link("dependencies", [("caller", r.caller)])),
                _cell(r.tool, own.link("tool")),
                _cell(r.upstream, view.filters.link("dependencies", [("upstream", r.upstream)])),
                theme.count(r.calls),
                markup.link(f"<u>{errors}</u>", own.link("errors")) if r.errors else errors,
                theme.percent(theme.ratio(r.errors, r.judged)),
                theme.count(r.degraded),
                view.clock(r.last_end),
            ]
        )
    st.html(markup.table(headers, rows))
    if len(frame) > MOST_ROWS:
        st.caption(t("The {shown} worst of {all}.", shown=MOST_ROWS, all=len(frame)))
    download(view, frame.head(MOST_ROWS), "dependencies", "edges")


def _cell(name: object, href: str) -> str:
    if not isinstance(name, str):
        return '<span class="fb-mute">–</span>'
    return markup.link(markup.name(name), href)
