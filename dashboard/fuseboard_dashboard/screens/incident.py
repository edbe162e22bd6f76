"""Incident: what happened in this window, in which order, and whom did it touch?"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from functools import partial
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from fuseboard_dashboard import empty, language, markup, theme
from fuseboard_dashboard.changed import link
from fuseboard_dashboard.charts import calls
from fuseboard_dashboard.downloads import file_stem
from fuseboard_dashboard.incidents import wording
from fuseboard_dashboard.incidents.entry import Entry
from fuseboard_dashboard.incidents.report import (
    Incident,
    incident,
    left_out_words,
    milestone_words,
    to_markdown,
)
from fuseboard_dashboard.incidents.timeline import change_words
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel


def page() -> None:
    """Draw the page."""
    show(PageFrame(t("Incident"), t("What happened in this window, in which order, and whom did "
                                    "it touch?"), _body, needs_calls=False))  # fmt: skip


def _body(view: View) -> None:
    if view.ask("page_store")["calls"][0] == 0:
        empty.first_run(view.source)
        return
    found = incident(view)
    with panel():
        words = t("Drag across the chart to choose the incident's window; the report and its links "
                  "keep it.")  # fmt: skip
        st.html(f'<div class="fb fb-quiet">{markup.esc(words)}</div>')
        axis = view.axis()
        time_chart(view, calls.outcomes_over_time(view.buckets("page_outcomes", axis), axis, 220),
                   "incident_outcomes")  # fmt: skip
    if found.is_empty:
        words = t("Nothing happened in this window: no alert, no transition, no failure.")
        st.html(markup.notice(words, theme.OUTCOME_MARKS["ok"], "fb-nothing-happened"))
        return
    with panel():
        st.html(markup.stats(_headline(view, found)))
        st.html(_told(view, found))
        _download(view, found)
    with panel(t("What changed"), t("Against the window before.")):
        st.html(_changes(found))
    with panel(t("Timeline"), n("{count} entry.", "{count} entries; each leads to the calls "
                                "behind it.", len(found.entries))):  # fmt: skip
        st.html(_timeline(view, found))
        if found.left_out:
            st.caption(left_out_words(found))


def _headline(view: View, found: Incident) -> list[markup.Stat]:
    stats = []
    for line in found.summary.milestones:
        words = wording.plain(line.sentence)
        short = wording.plain(line.short) or (words if line.moment is None else "")
        at = None if line.moment is None else line.moment.replace(tzinfo=UTC).timestamp()
        stats.append(
            markup.Stat(
                f"incident-{line.id}", milestone_words(line.id), view.clock(line.moment), at, short,
                hint=words,
            )
        )  # fmt: skip
    totals = found.evidence.totals
    affected = float(totals["affected"])
    stats.append(
        markup.Stat(
            "affected", t("Calls affected"), theme.count(affected), affected,
            t("of {calls}", calls=theme.count(found.evidence.all_calls)),
            href=found.evidence.filters.link("slos"),
            hint=t("errors, rejected, answered by a stand-in or unusably"),
        )
    )  # fmt: skip
    sessions = int(totals["sessions"])
    stats.append(
        markup.Stat(
            "sessions",
            t("Sessions affected"),
            theme.count(sessions),
            sessions,
            n("{count} agent", "{count} agents", int(totals["agents"])),
        )
    )
    return stats


def _told(view: View, found: Incident) -> str:
    lines = []
    for line in found.summary.milestones:
        when = "" if line.moment is None else f"{view.clock(line.moment)} · "
        lines.append(
            f"<b>{markup.esc(milestone_words(line.id))}</b> {markup.esc(when)}"
            f"{wording.html(line.sentence)}"
        )
    lines += [wording.html(words) for words in found.summary.impact]
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<div class="fb" data-testid="fb-impact"><ul class="fb-rises">{items}</ul></div>'


def _changes(found: Incident) -> str:
    lines = [
        markup.link(wording.html(change_words(change)), link(found.evidence.filters, change))
        for change in found.evidence.rises
    ]
    if not lines:
        words = found.evidence.untold or t("Nothing rose by more than chance explains.")
        return f'<div class="fb fb-quiet">{markup.esc(words)}</div>'
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<div class="fb"><ul class="fb-rises">{items}</ul></div>'


def _timeline(view: View, found: Incident) -> str:
    rows = "".join(_row(view, entry) for entry in found.entries)
    return f'<div class="fb fb-timeline">{rows}</div>'


def _row(view: View, entry: Entry) -> str:
    utc = f"{entry.moment:%Y-%m-%d %H:%M:%S} UTC"
    words = markup.link(wording.html(entry.sentence), entry.href)
    return (
        f'<div class="fb-entry" style="--c:{entry.mark.colour}" data-testid="fb-entry" '
        f'data-kind="{entry.kind}" data-time="{entry.moment.isoformat()}Z" '
        f'data-count="{entry.count}">'
        f'<span class="fb-when" title="{utc}">{view.clock(entry.moment)}</span>'
        f'<span class="fb-symbol">{markup.esc(entry.mark.symbol)}</span>'
        f"<span>{words}</span></div>"
    )


def _download(view: View, found: Incident) -> None:
    st.download_button(
        t("Report in Markdown"), data=report_maker(found, view, _address()),
        mime="text/markdown", key="fb_incident_report",
        file_name=f"{file_stem('incident', 'report', view.window)}.md", on_click="ignore",
        icon=":material/download:", help=t("The summary and the whole timeline, times in UTC"),
    )  # fmt: skip


def report_maker(found: Incident, view: View, address: str) -> Callable[[], str]:
    """Return what makes the report, in the language of now.

    A click runs it in a thread that no session belongs to: there nothing tells who reads.
    """
    return partial(_report, language.current(), found, view, address)


def _report(spoken: str, found: Incident, view: View, address: str) -> str:
    with language.speaking(spoken):
        return to_markdown(found, view.zone, view.zone_name, address)


def _address() -> str:
    """Return the base address of the dashboard as the viewer's browser has it."""
    parts = urlsplit(st.context.url or "")
    if not parts.scheme:
        return ""
    path = parts.path.rstrip("/").removesuffix("/incident")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
