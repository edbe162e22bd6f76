"""Parts of one session: its numbers, its circles in words, the table of its calls."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from fuseboard_dashboard import contexts, markup, sessions, tables, theme, traces
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.filters import HASH
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.sessions import Circle
from fuseboard_dashboard.view import View


def numbers(calls: pd.DataFrame, spans: pd.DataFrame, found: Sequence[Circle]) -> list[markup.Stat]:
    """Return the session in numbers.

    Args:
        calls: Rows of ``page_session_calls``.
        spans: Of its models.
        found: Its circles.
    """
    length = (calls["end"].max() - calls["start"].min()).total_seconds()
    faults = int(
        (calls["error_class"].notna() | calls["outcome"].isin(("error", "rejected"))).sum()
    )
    attempts, retries = calls["attempts"], calls["attempts"].clip(lower=1) - 1
    repeated = sum(len(circle.calls) for circle in found)
    shown = [
        markup.Stat("session-steps", t("Calls"), theme.count(len(calls)), len(calls),
                    n("of {count} tool", "of {count} tools", calls["tool"].nunique())),
        markup.Stat("session-seconds", t("Duration"), theme.seconds(length), length,
                    t("first call to last")),
        markup.Stat("session-faults", t("Faulty calls"), theme.count(faults), faults,
                    t("handled or not"), "bad" if faults else ""),
        markup.Stat("session-attempts", t("Attempts"), theme.count(attempts.sum()),
                    float(attempts.sum()),
                    n("{count} retry", "{count} retries", int(retries.sum())),
                    hint=t("what a budget of attempts or retries counts")),
        markup.Stat("session-repeats", t("Repeated calls"), theme.count(repeated), repeated,
                    t("same arguments"), "warn" if repeated else ""),
    ]  # fmt: skip
    if len(spans):
        shown += _tokens(spans)
    cost = calls["cost"].dropna()
    if len(cost):
        total = float(cost.sum())
        shown.append(markup.Stat("session-cost", t("Cost"), f"{total:,.4g}", total,
                                 t("as tools report it")))  # fmt: skip
    return shown


def _tokens(spans: pd.DataFrame) -> list[markup.Stat]:
    read, written = float(spans["input_tokens"].sum()), float(spans["output_tokens"].sum())
    grown, most = contexts.growth(spans["input_tokens"]), spans["input_tokens"].max()
    return [
        markup.Stat("session-tokens", t("Tokens"), theme.count(read + written), read + written,
                    t("{read} in, {written} out", read=theme.count(read),
                      written=theme.count(written))),
        markup.Stat("session-growth", t("Context growth"), theme.factor(grown), grown,
                    t("to {count} tokens", count=theme.count(most)),
                    hint=t("most input tokens of a model call / those of the first")),
    ]  # fmt: skip


def circles(view: View, found: Sequence[Circle]) -> None:
    """Draw what was called again and again, the ten that were most often."""
    parts = [_circle(view, circle) for circle in found[:10]]
    st.html(f'<div class="fb fb-changes">{"".join(parts)}</div>')
    if len(found) > 10:
        st.caption(t("And {count} others.", count=len(found) - 10))


def _circle(view: View, circle: Circle) -> str:
    calls, first = circle.calls, circle.calls.iloc[0]
    last = calls.iloc[-1]
    lost = int(calls["outcome"].isin(("error", "rejected")).sum())
    line = t(
        "{tool} was called {times} times with the same arguments, {longest} of them in a row, "
        "from {first} to {last}.",
        tool=markup.shorten(circle.tool), times=len(calls), longest=circle.longest,
        first=view.clock(first["start"]), last=view.clock(last["end"]),
    )  # fmt: skip
    ends = n("{count} failed.", "{count} failed.", lost) if lost else t("None of them failed.")
    near = traces.filters_near(view.filters, view.window, last["end"], view.source.clock())
    own = near.narrowed(tool=circle.tool)
    ways = [
        (t("First trace"), traces.link(view.filters, first["trace_id"], first["end"])),
        (t("Last trace"), traces.link(view.filters, last["trace_id"], last["end"])),
        (t("Faults with these arguments"), own.link("errors", [(HASH, circle.args_hash)])),
        (t("This tool"), own.link("tool")),
    ]
    links = " · ".join(markup.link(f"<u>{markup.esc(words)}</u>", href) for words, href in ways)
    return (
        f'<div class="fb-change" style="--c:{theme.VIOLET}" data-testid="fb-circle" '
        f'data-tool="{markup.esc(circle.tool)}" data-args-hash="{markup.esc(circle.args_hash)}" '
        f'data-calls="{len(calls)}" data-longest="{circle.longest}">'
        f'<span class="fb-symbol">⟳</span><div><b>{markup.esc(line)}</b> {markup.esc(ends)}'
        f'<p><span class="fb-mono">{markup.esc(markup.shorten(circle.args_hash, 40))}</span> '
        f"· {links}</p></div></div>"
    )


def table(view: View, calls: pd.DataFrame) -> None:
    """Draw the calls as a table.

    Args:
        view: For zone and filters.
        calls: Rows of ``page_session_calls``, in time.
    """
    again = sessions.is_repeated(calls).map({True: "⟳", False: ""})
    shown = pd.DataFrame(
        {
            "number": range(1, len(calls) + 1),
            "time": view.local(calls["start"]),
            "trace": traces.links(view.filters, calls["trace_id"], calls["end"]),
            "tool": calls["tool"],
            "region": calls["region"],
            "agent": tables.blank(calls["agent"]),
            "outcome": tables.marked(calls["outcome"], theme.OUTCOME_MARKS),
            "class": tables.marked(calls["error_class"], theme.CLASS_MARKS),
            "error": tables.blank(calls["error_type"]).map(tables.last_part),
            "attempts": calls["attempts"],
            "duration": calls["duration_seconds"],
            "again": again,
            "arguments": tables.blank(calls["args_hash"]),
        }
    )
    drop = [name for name in ("class", "error", "agent", "again") if (shown[name] == "").all()]
    column = st.column_config
    st.dataframe(
        shown.drop(columns=drop), hide_index=True, height=tables.height(shown), key="session_calls",
        column_config={
            "number": column.NumberColumn(t("Step"), width=55, pinned=True),
            "time": tables.times(t("Began"), view, shown["time"], pinned=False),
            "tool": column.TextColumn(t("Tool"), width=140),
            "region": column.TextColumn(t("Region"), width=105),
            "agent": column.TextColumn(t("Agent"), width=110),
            "outcome": column.TextColumn(t("Outcome"), width=105),
            "class": column.TextColumn(t("Class"), width=125),
            "error": column.TextColumn(t("Error type"), width=140),
            "attempts": column.NumberColumn(t("Attempts"), width=78),
            "duration": column.NumberColumn(t("Duration (s)"), format="%.3f", width=100),
            "again": column.TextColumn(
                t("Repeated"), width=78, help=t("the same tool and arguments, as others")),
            "arguments": column.TextColumn(t("Argument hash"), width=165),
            "trace": column.LinkColumn(
                t("Trace"), display_text=traces.LINK_SHOWS, width=95,
                help=t("Opens what happened around this call, in a new tab")),
        },
    )  # fmt: skip
    download(view, calls, "sessions", "calls")
