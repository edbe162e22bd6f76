"""The tables of the page on degradation: where, why, by what, and the calls themselves."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import streamlit as st

from fuseboard.conventions import Outcome
from fuseboard_dashboard import answers, markup, tables, theme, traces
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View, panel

MOST_PLACES: Final = 100
MOST_CAUSES: Final = 30


def draw(view: View, places: pd.DataFrame, everywhere: pd.DataFrame) -> None:
    """Draw all tables.

    Args:
        view: For the window and filters.
        places: Rows of ``page_answers`` with their kinds.
        everywhere: The same whatever classes are chosen, for caches.
    """
    words = t("Share of the calls there that were to be answered. A cell leads to its calls.")
    with panel(t("Tool × region × source"), words):
        _matrix(view, answers.by_place(places))
    words = t("The fault that was handled. A row leads to its calls.")
    with panel(t("Why answers are not whole"), words):
        _causes(view)
    with panel(t("What stood in"), t("Fallbacks by name, and how far they can be trusted.")):
        _fallbacks(view)
    with panel(t("Caches"), t("Hits are answers within their time; they make no attempt.")):
        _caches(view, answers.caches(everywhere))
    with panel(t("Sample calls"), t("Newest degraded and partial calls first.")):
        _samples(view)


def _matrix(view: View, table: pd.DataFrame) -> None:
    kinds = [kind for kind in theme.ANSWER_MARKS if len(table) and table[kind].any()]
    if not kinds:
        st.html(markup.quiet(t("Every answer is live.")))
        return
    headers = [(t("Tool"), False), (t("Region"), False), (t("Calls"), True)]
    headers += [(f"{theme.ANSWER_MARKS[k].symbol} {theme.ANSWER_MARKS[k].label}", True)
                for k in kinds]  # fmt: skip
    headers.append((t("Oldest answer"), True))
    rows = []
    for r in rows_of(table.head(MOST_PLACES)):
        own = view.filters.narrowed(tool=r.tool, region=r.region)
        rows.append(
            [
                markup.link(markup.name(r.tool), own.link("tool")),
                markup.name(r.region),
                theme.count(r.judged),
                *(_cell(view, k, r.tool, r.region, getattr(r, k), r.judged) for k in kinds),
                theme.seconds(r.oldest),
            ]
        )
    st.html(markup.table(headers, rows))
    if len(table) > MOST_PLACES:
        st.caption(
            t("The {shown} worst of {all} tools and regions.", shown=MOST_PLACES, all=len(table))
        )
    download(view, table.head(MOST_PLACES), "degradation", "places")


def _cell(view: View, kind: str, tool: str, region: str, calls: float, judged: float) -> str:
    if not calls:
        return '<span class="fb-mute">·</span>'
    mark, share = theme.ANSWER_MARKS[kind], theme.ratio(calls, judged) or 0.0
    own = view.filters.narrowed(tool=tool, region=region)
    inner = (
        f'<span class="fb-cell" style="--c:{mark.colour};--s:{round(8 + 42 * min(1.0, share))}%" '
        f'data-testid="fb-answer-cell" data-kind="{kind}" data-tool="{markup.esc(tool)}" '
        f'data-region="{markup.esc(region)}" data-value="{float(calls)!r}">'
        f"{theme.count(calls)}<small>{theme.percent(share)}</small></span>"
    )
    return markup.link(inner, own.link("degradation", [("answer", kind)]))


def _causes(view: View) -> None:
    frame = view.ask("page_answer_causes")
    if not len(frame):
        st.html(markup.quiet(t("No degraded or partial call in this window.")))
        return
    headers = ((t("Cause"), False), (t("Class"), False), (t("Classifier"), False),
               (t("Error"), False), (t("Decided by"), False), (t("Breaker on entry"), False),
               (t("Calls"), True), (t("Tools"), True), (t("Last"), True))  # fmt: skip
    rows = [_cause(view, r) for r in rows_of(frame.head(MOST_CAUSES))]
    st.html(markup.table(headers, rows))
    if len(frame) > MOST_CAUSES:
        st.caption(t("The {shown} most frequent of {all}.", shown=MOST_CAUSES, all=len(frame)))
    download(view, frame.head(MOST_CAUSES), "degradation", "causes")


def _cause(view: View, row: Any) -> list[str]:
    has_class = isinstance(row.error_class, str)
    own = view.filters.narrowed(error_class=row.error_class if has_class else None)
    extra = [("classifier", row.classifier_id)] if isinstance(row.classifier_id, str) else []
    if row.outcome == Outcome.PARTIAL:
        extra.append(("answer", "partial"))
    outcome = markup.badge(theme.mark(theme.OUTCOME_MARKS, row.outcome))
    words = markup.esc(answers.cause(row))
    if has_class or extra:  # else it would lead to all calls
        words = markup.link(f"<u>{words}</u>", own.link("degradation", extra))
    return [
        f"{outcome} {words}",
        markup.badge(theme.mark(theme.CLASS_MARKS, row.error_class)) if has_class else _mute(),
        _mono(row.classifier_id),
        _type(row.error_type if isinstance(row.error_type, str) else row.cause_type),
        _mono(row.layer),
        markup.breaker(row.breaker_state if isinstance(row.breaker_state, str) else None),
        theme.count(row.calls),
        theme.count(row.tools),
        view.clock(row.last_end),
    ]


def _fallbacks(view: View) -> None:
    frame = answers.with_kinds(view.ask("page_answer_kinds"))
    frame = frame[frame["kind"].isin(answers.STAND_INS)]
    if not len(frame):
        st.html(markup.quiet(t("Nothing stood in for a live answer in this window.")))
        return
    headers = ((t("Source"), False), (t("Fallback"), False), (t("Confidence"), False),
               (t("Calls"), True), (t("Tools"), True), (t("Last"), True))  # fmt: skip
    rows = [
        [
            markup.link(
                markup.badge(theme.ANSWER_MARKS[r.kind]),
                view.filters.link("degradation", [("answer", r.kind)]),
            ),
            _mono(r.fallback_tool),
            _mono(r.confidence),
            theme.count(r.calls),
            theme.count(r.tools),
            view.clock(r.last_end),
        ]
        for r in rows_of(frame.head(MOST_CAUSES))
    ]
    st.html(markup.table(headers, rows))
    download(view, frame.head(MOST_CAUSES), "degradation", "fallbacks")


def _caches(view: View, table: pd.DataFrame) -> None:
    if not len(table):
        words = t("No cache at work here. Policy(cache=Cache(ttl=…)) gives a tool one.")
        st.html(markup.quiet(words))
        return
    headers = ((t("Tool"), False), (t("Region"), False), (t("Calls"), True), (t("Hits"), True),
               (t("Hit share"), True), (t("Stale"), True), (t("Age p50"), True),
               (t("Age p95"), True), (t("Oldest"), True))  # fmt: skip
    rows = []
    for r in rows_of(table.head(MOST_PLACES)):
        own = view.filters.narrowed(tool=r.tool, region=r.region)
        rows.append(
            [
                markup.link(markup.name(r.tool), own.link("degradation", [("answer", "cache")])),
                markup.name(r.region),
                theme.count(r.judged),
                theme.count(r.hits),
                theme.percent(r.hit_ratio),
                theme.count(r.stale),
                theme.seconds(r.age_p50),
                theme.seconds(r.age_p95),
                theme.seconds(r.oldest),
            ]
        )
    st.html(markup.table(headers, rows))
    download(view, table.head(MOST_PLACES), "degradation", "caches")


def _samples(view: View) -> None:
    wanted, classifier = (st.query_params.get(name) for name in ("answer", "classifier"))
    if wanted not in theme.ANSWER_MARKS:
        wanted = None
    notes = []
    if wanted is not None:
        notes.append(t("Only answers of this kind: {kind}.", kind=theme.ANSWER_MARKS[wanted].label))
    if classifier is not None:
        notes.append(t("Only faults of classifier {name}.", name=markup.shorten(classifier, 60)))
    if notes:
        href = view.filters.link("degradation")
        more = markup.link(f"<u>{markup.esc(t('Show all'))}</u>", href)
        words = markup.esc(" ".join(notes))
        st.html(f'<div class="fb" data-testid="fb-narrowed">{words} {more}</div>')
    frame = view.ask(
        "page_answer_calls", **answers.chosen(wanted), row_limit=tables.SAMPLE_ROWS,
        classifiers=None if classifier is None else [classifier],
    )  # fmt: skip
    if not len(frame):
        st.html(markup.quiet(t("No such call in this window.")))
        return
    _calls(view, frame)


def _calls(view: View, frame: pd.DataFrame) -> None:
    kinds = answers.with_kinds(frame)
    shown = pd.DataFrame(
        {
            "time": view.local(frame["end"]),
            "tool": frame["tool"],
            "region": frame["region"],
            "kind": tables.marked(kinds["kind"], theme.ANSWER_MARKS),
            "age": frame["result_age_seconds"].map(theme.seconds),
            "confidence": tables.blank(frame["confidence"]),
            "fallback": tables.blank(frame["fallback_tool"]),
            "failed": tables.whole(frame["partial_failures"]),
            "class": tables.marked(frame["error_class"], theme.CLASS_MARKS),
            "classifier": tables.blank(frame["classifier_id"]),
            "error": tables.blank(frame["error_type"]).map(tables.last_part),
            "message": tables.blank(frame["error_message"]),
            "breaker": tables.marked(frame["breaker_state"], theme.STATE_MARKS),
            "attempts": frame["attempts"],
            "duration": frame["duration_seconds"],
            "arguments": tables.blank(frame["args_hash"]),
            "upstream": tables.blank(frame["upstream"]),
            "trace": traces.links(view.filters, frame["trace_id"], frame["end"]),
        }
    )
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    st.dataframe(
        shown, hide_index=True, height=tables.height(shown), key="degradation_calls",
        column_config={
            "time": tables.times(t("Ended"), view, shown["time"],
                                 t("End of the call, {zone}", zone=view.zone_name)),
            "tool": text(t("Tool"), width=115),
            "region": text(t("Region"), width=100),
            "kind": text(t("Answer"), width=125),
            "age": text(t("Age"), width=80),
            "confidence": text(t("Confidence"), width=100),
            "fallback": text(t("Fallback"), width=110),
            "failed": text(t("Failed parts"), width=90),
            "class": text(t("Class"), width=120),
            "classifier": text(t("Classifier"), width=150),
            "error": text(t("Error type"), width=140),
            "message": text(t("Message"), width=260),
            "breaker": text(t("Breaker"), width=100),
            "attempts": number(t("Attempts"), width=78),
            "duration": number(t("Duration (s)"), format="%.3f", width=100),
            "arguments": text(t("Argument hash"), width=165),
            "upstream": text(t("Upstream"), width=120),
            "trace": st.column_config.LinkColumn(
                t("Trace"), display_text=traces.LINK_SHOWS, width=95,
                help=t("Opens what happened around this call, in a new tab")),
        },
    )  # fmt: skip
    download(view, frame, "degradation", "calls")


def _mute() -> str:
    return '<span class="fb-mute">–</span>'


def _mono(value: object) -> str:
    if not isinstance(value, str):
        return _mute()
    return f'<span class="fb-mono">{markup.name(value)}</span>'


def _type(value: object) -> str:
    if not isinstance(value, str):
        return _mute()
    shown = markup.esc(markup.shorten(tables.last_part(value)))
    return f'<span class="fb-mono fb-name" title="{markup.esc(value[:500])}">{shown}</span>'
