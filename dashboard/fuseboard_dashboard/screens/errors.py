"""Errors: which class, which tool, which region, which arguments?"""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from fuseboard_dashboard import headline, markup, tables, theme
from fuseboard_dashboard.charts import calls
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel
from fuseboard_dashboard.vocabulary import class_meanings

MATRIX_ROWS = 100


def page() -> None:
    """Draw the page."""
    question = t("Which class, tool, region and arguments are failing?")
    show(PageFrame(t("Errors"), question, _body))


def _body(view: View) -> None:
    with panel():
        _head(view)
    with panel(t("Faulty calls over time"), t("Every call that carries a class, handled or not.")):
        axis = view.axis()
        outcomes = view.buckets("page_outcomes", axis)
        if outcomes["error_class"].notna().any():
            time_chart(view, calls.classes_over_time(outcomes, axis, 250), "error_classes")
        else:
            st.html(markup.notice(t("No faulty call in this window."), theme.OUTCOME_MARKS["ok"],
                                  "fb-all-good"))  # fmt: skip
            return
    words = t("Faulty calls and their share of that tool's calls there. A cell leads to its calls.")
    with panel(t("Class × tool × region"), words):
        _matrix(view)
    with panel(t("What the classes mean")):
        st.html(_key())
    with panel(t("Classifiers and error types"), t("Which rule gave the class, and what it saw.")):
        _kinds(view)
    words = t("Equal arguments have equal hashes. Share: of all calls with that hash.")
    with panel(t("Argument hashes"), words):
        _arguments(view)
    with panel(t("Sample calls"), t("Newest faulty calls first.")):
        _samples(view)


def _head(view: View) -> None:
    row = view.totals()
    before = view.before().totals()
    share = theme.ratio(row["faults"], row["calls"])
    items = [
        headline.calls(row, before),
        markup.Stat(
            "faults",
            t("Faulty calls"),
            theme.count(row["faults"]),
            row["faults"],
            t("{share} of calls", share=theme.percent(share)),
            hint=t("calls that carry an error class, handled or not"),
        ),
        headline.errors(row, before, view.filters),
        markup.Stat(
            "errors",
            t("Errors"),
            theme.count(row["errors"]),
            row["errors"],
            t("without L1 input"),
            hint=t("outcome error or rejected, without L1 input errors"),
        ),
        markup.Stat(
            "rejected",
            t("Rejected"),
            theme.count(row["rejected"]),
            row["rejected"],
            t("no attempt made"),
            hint=t("rejected by a breaker, limit or budget"),
        ),
        headline.degraded(row, view.filters),
        markup.Stat(
            "partials",
            t("Partial"),
            theme.count(row["partials"]),
            row["partials"],
            t("live, incomplete"),
            hint=t("live results with partial failures"),
        ),
    ]
    st.html(markup.stats(items))


def _matrix(view: View) -> None:
    frame = view.ask("page_error_matrix")
    totals = frame.groupby(["tool", "region"], sort=False).agg(
        faults=("faults", "sum"), calls=("calls", "first")
    )
    worst = totals.sort_values("faults", ascending=False)
    cells = {(r.error_class, r.tool, r.region): r for r in rows_of(frame)}
    classes = [c for c in theme.CLASS_MARKS if (frame["error_class"] == c).any()]
    headers = [(t("Tool"), False), (t("Region"), False), (t("Calls"), True)]
    headers += [(f"{theme.CLASS_MARKS[c].symbol} {theme.CLASS_MARKS[c].label}", True)
                for c in classes]  # fmt: skip
    rows = []
    for tool, region, calls_there in rows_of(
        worst.reset_index()[["tool", "region", "calls"]].head(MATRIX_ROWS)
    ):
        own = view.filters.narrowed(tool=tool, region=region)
        rows.append(
            [
                markup.link(markup.name(tool), own.link("tool")),
                markup.name(region),
                theme.count(calls_there),
                *(_cell(view, c, tool, region, cells.get((c, tool, region))) for c in classes),
            ]
        )
    st.html(markup.table(headers, rows))
    if len(worst) > MATRIX_ROWS:
        st.caption(t("The {shown} worst of {all} tools and regions.",
                     shown=MATRIX_ROWS, all=len(worst)))  # fmt: skip
    kept = worst.head(MATRIX_ROWS).index
    shown = frame[pd.MultiIndex.from_frame(frame[["tool", "region"]]).isin(kept)]
    download(view, shown, "errors", "matrix")


def _cell(view: View, error_class: str, tool: str, region: str, row: Any) -> str:
    if row is None:
        return '<span class="fb-mute">·</span>'
    mark = theme.CLASS_MARKS[error_class]
    share = float(row.fault_ratio)
    faults = float(row.faults)
    strength = round(8 + 42 * min(1.0, share / 0.5))
    own = view.filters.narrowed(tool=tool, region=region, error_class=error_class)
    inner = (
        f'<span class="fb-cell" style="--c:{mark.colour};--s:{strength}%" data-testid="fb-cell" '
        f'data-class="{markup.esc(error_class)}" data-tool="{markup.esc(tool)}" '
        f'data-region="{markup.esc(region)}" data-value="{faults!r}">'
        f"{theme.count(faults)}<small>{theme.percent(share)}</small></span>"
    )
    return markup.link(inner, own.link("errors"))


def _key() -> str:
    parts = []
    for value, meaning in class_meanings().items():
        mark = theme.CLASS_MARKS[value]
        examples = t("{examples}.", examples=meaning.examples)
        acting = t("{handling}. Who acts: {owner}.",
                   handling=meaning.handling.capitalize(), owner=meaning.owner)  # fmt: skip
        parts.append(
            f'<div style="--c:{mark.colour}">{markup.badge(mark)}'
            f"<p><b>{markup.esc(meaning.meaning)}</b> {markup.esc(examples)}</p>"
            f"<p>{markup.esc(acting)}</p>{_more(meaning.page)}</div>"
        )
    return f'<div class="fb fb-key">{"".join(parts)}</div>'


def _more(page: str) -> str:
    where = f'<span class="fb-mono">{markup.esc(page)}</span>'
    return f"<p>{t('How: {page}', page=where)}</p>" if page else ""


def _kinds(view: View) -> None:
    frame = view.ask("page_error_kinds")
    headers = (
        (t("Class"), False),
        (t("Classifier"), False),
        (t("Error type"), False),
        (t("HTTP"), True),
        (t("Calls"), True),
        (t("Last"), True),
    )
    rows = [
        [
            markup.badge(theme.mark(theme.CLASS_MARKS, r.error_class)),
            _text(r.classifier_id),
            _type(r.error_type),
            "" if pd.isna(r.http_status) else str(int(r.http_status)),
            theme.count(r.faults),
            view.clock(r.last_end),
        ]
        for r in rows_of(frame.head(30))
    ]
    st.html(markup.table(headers, rows))
    download(view, frame.head(30), "errors", "kinds")


def _text(value: object) -> str:
    if value is None or value != value:
        return '<span class="fb-mute">–</span>'
    return f'<span class="fb-mono">{markup.name(value)}</span>'


def _type(value: object) -> str:
    if not isinstance(value, str):
        return _text(value)
    shown = markup.esc(markup.shorten(tables.last_part(value)))
    return f'<span class="fb-mono fb-name" title="{markup.esc(value[:500])}">{shown}</span>'


def _arguments(view: View) -> None:
    frame = view.ask("page_error_arguments")
    if not len(frame):
        st.html(markup.quiet(t("No faulty call carries an argument hash.")))
        return
    headers = (
        (t("Tool"), False),
        (t("Argument hash"), False),
        (t("Mostly"), False),
        (t("Faulty"), True),
        (t("Share"), True),
    )
    rows = []
    for r in rows_of(frame.head(20)):
        href = view.filters.narrowed(tool=r.tool).link("errors", [("hash", r.args_hash)])
        title = markup.esc(r.args_hash[:100])
        shown = markup.esc(markup.shorten(r.args_hash, 13))
        hash_ = f'<span class="fb-mono" title="{title}">{shown}</span>'
        rows.append(
            [
                markup.name(r.tool),
                markup.link(hash_, href),
                markup.badge(theme.mark(theme.CLASS_MARKS, r.error_class)),
                theme.count(r.faults),
                theme.percent(r.fault_ratio),
            ]
        )
    st.html(markup.table(headers, rows))
    download(view, frame.head(20), "errors", "arguments")


def _samples(view: View) -> None:
    wanted = st.query_params.get("hash")
    if wanted is not None:
        href = view.filters.link("errors")
        note = t("Only calls with argument hash {hash}.", hash=markup.shorten(wanted, 40))
        show_all = markup.link(f"<u>{markup.esc(t('Show all'))}</u>", href)
        st.html(f'<div class="fb">{markup.esc(note)} {show_all}</div>')
    frame = view.ask("page_calls", kind="faults", args_hash=wanted, row_limit=tables.SAMPLE_ROWS)
    if len(frame):
        tables.sample_calls(view, frame, "errors_calls")
    else:
        st.html(markup.quiet(t("No such call in this window.")))
