"""Alerts as the board and the Alerts page show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import ErrorClass
from fuseboard_alerts import memory as documents
from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, SlowShare
from fuseboard_alerts.mutes import Mute
from fuseboard_alerts.state import Instance
from fuseboard_collector.errors import StoreError
from fuseboard_dashboard import markup, muted, theme
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.view import View

Row = Mapping[Any, Any]
Key = tuple[str, str, str]
"""Alert, severity and labels."""

CAUSES: Final = {
    "ToolCallBreakerOpen": "breakers",
    "ToolCallErrorRatioHigh": "errors",
    "ToolCallRetryRateHigh": "retries",
    "ToolCallSemanticErrorsHigh": "errors",
    "ToolCallSlow": "latency",
    "ToolCallTelemetryAbsent": "alerts",
}
"""Alert → the page on which its runbook begins."""

_CLASSES: Final = {"ToolCallSemanticErrorsHigh": (ErrorClass.L5_SEMANTIC.value,)}
_RULES: Final = {rule.name: rule for rule in CATALOGUE}
_RATIOS: Final = frozenset(
    rule.name for rule in CATALOGUE if isinstance(rule.condition, Ratio | SlowShare)
)


FIRING: Final = "firing"


def _summary(alert: str) -> str:
    rule = _RULES.get(alert)
    return "" if rule is None else t(rule.summary)


def place_of(labels: str) -> tuple[str | None, str | None]:
    """Return the tool and region that an alert instance is about, None where it names none."""
    try:
        parsed = json.loads(labels)
    except ValueError:
        return None, None
    if not isinstance(parsed, dict):
        return None, None
    tool, region = (str(parsed[key]) if parsed.get(key) else None for key in ("tool", "region"))
    return tool, region


def label_words(labels: str) -> str:
    """Return the labels of an alert instance in words: ``tool · region (job)``."""
    try:
        parsed = json.loads(labels)
    except ValueError:
        return labels
    if not isinstance(parsed, dict) or not parsed:
        return t("everything")
    named = [str(parsed[key]) for key in ("tool", "region") if parsed.get(key)]
    others = [
        f"{key}={value}" for key, value in parsed.items() if key not in ("tool", "region", "job")
    ]
    job = [f"({parsed['job']})"] if parsed.get("job") else []
    return " · ".join([*named, *others]) + (" " + job[0] if job else "")


def cause_link(alert: str, labels: str, filters: Filters) -> str:
    """Return the address of the page that shows why, for the instance's tool and region."""
    return link_to_cause(alert, *place_of(labels), filters)


def link_to_cause(alert: str, tool: str | None, region: str | None, filters: Filters) -> str:
    """Return the address of the page on which an alert's runbook begins, for a tool and region."""
    own = replace(filters.narrowed(tool=tool, region=region), classes=_CLASSES.get(alert, ()))
    return own.link(CAUSES.get(alert, "alerts" if tool is None else "tool"))


def value_words(alert: str, value: object) -> str:
    """Return a measured value in the unit of its alert; a breaker's state has none."""
    if alert not in _RATIOS or not isinstance(value, float):
        return ""
    return theme.percent(value)


def scale_notice(view: View) -> str:
    """Return a notice if alert windows and holds don't run in real time, else nothing."""
    scale = view.source.alert_time_scale
    if scale == 1:
        return ""
    words = t(
        "Alert time scale {scale}: all alert windows and hold times are multiplied by {scale} (5 "
        "minutes become {five}). For demonstrations; real time is --alert-time-scale 1.",
        scale=f"{scale:g}", five=f"{300 * scale:g} s",
    )  # fmt: skip
    return markup.notice(words, theme.SEVERITY_MARKS["warning"], "fb-time-scale")


def strip(view: View, frame: pd.DataFrame, most: int = 6) -> str:
    """Return the active alerts as a stack of lines, most urgent first, muted ones last.

    Where mutes can't be read, all are shown as not muted, below a line that says so.

    Args:
        view: For times and links.
        frame: Rows of ``page_alerts_now``.
        most: Lines before the rest is summed up.
    """
    # They say more of the alerts; whatever keeps them away must not hide the alerts themselves.
    notice, mutes, values = "", list[Mute](), dict[Key, Instance]()
    try:
        mutes = muted.in_force(view)
    except StoreError as error:
        notice = muted.unknown(error)
    with suppress(StoreError):
        values = current(view)
    rows = [(row, muted.of(mutes, view, row)) for row in frame.to_dict("records")]
    rows.sort(key=lambda pair: pair[1] is not None)
    lines = "".join(
        _line(view, row, mute, values.get(_key(row))) for row, mute in rows[:most]
    )  # fmt: skip
    if len(rows) > most:
        more = n("{count} more on the Alerts page", "{count} more on the Alerts page",
                 len(rows) - most)  # fmt: skip
        link = markup.link(markup.esc(more), view.filters.link("alerts"))
        lines += f'<div class="fb-more">{link}</div>'
    return f'{notice}<div class="fb fb-alerts">{lines}</div>'


def current(view: View) -> dict[Key, Instance]:
    """Return what the evaluator knows of each active alert; nothing where the window is past.

    The history has a row for every change of state; what is measured between them is in the
    evaluator's memory alone.
    """
    if not view.filters.is_live:
        return {}
    answer = CACHE.ask(view.source.reader, "alert_memory_load", {}, view.source.clock)
    rows = answer.table.to_pylist()
    try:
        known = documents.load(str(rows[0]["document"])) if rows else documents.Memory()
    except ValueError:
        return {}  # of another version
    return {
        (*_parts(rule_id), labels_text(dict(labels))): instance
        for (rule_id, labels), instance in known.instances.items()
    }


def _parts(rule_id: str) -> tuple[str, str]:
    alert, _, severity = rule_id.partition("/")
    return alert, severity


def _key(row: Row) -> Key:
    return str(row["alert"]), str(row["severity"]), _canonical(str(row["labels"]))


def _canonical(labels: str) -> str:
    try:
        parsed = json.loads(labels)
    except ValueError:
        return labels
    return labels_text(parsed) if isinstance(parsed, dict) else labels


def labels_text(labels: Mapping[str, object]) -> str:
    """Return labels as one text, whatever their order."""
    return json.dumps(dict(sorted(labels.items())), separators=(",", ":"))


def _line(view: View, row: Row, mute: Mute | None, instance: Instance | None) -> str:
    alert, state, severity = str(row["alert"]), str(row["state"]), str(row["severity"])
    labels = str(row["labels"])
    mark = theme.mark(theme.SEVERITY_MARKS, severity)
    words = theme.mark(theme.ALERT_STATE_MARKS, state).label
    if mute is not None:
        mark = theme.MUTED
    elif state != FIRING:
        mark = theme.mark(theme.ALERT_STATE_MARKS, state)
    begun = row["fired_at"] if state == FIRING else row["active_at"]
    since = view.ago(begun if isinstance(begun, pd.Timestamp) else None)
    what = markup.link(f"<b>{markup.esc(alert)}</b>", cause_link(alert, labels, view.filters))
    about = label_words(labels)
    title = f"{_summary(alert)} {about[:500]}"
    pending = "" if state == FIRING and mute is None else " is-pending"
    is_loud = state == FIRING and mute is None
    name = theme.mark(theme.SEVERITY_MARKS, severity).label
    lasting = t("{state} for {time}", state=words, time=since)
    return (
        f'<div class="fb-alert{pending}" style="--c:{mark.colour}" data-testid="fb-alert" '
        f'data-alert="{markup.esc(alert)}" data-state="{markup.esc(state)}" '
        f'data-severity="{markup.esc(severity)}" data-muted="{str(mute is not None).lower()}">'
        f"<span>{markup.badge(mark, name, loud=is_loud)}</span>"
        f'<span class="fb-what" title="{markup.esc(title)}">{what} &nbsp;'
        f"{markup.esc(markup.shorten(about, 110))}{_muted(view, mute)}</span>"
        f'<span class="fb-when">{markup.esc(lasting)}{_values(alert, row, instance)}</span></div>'
    )


def _muted(view: View, mute: Mute | None) -> str:
    if mute is None:
        return ""
    words = muted.words(view, mute)
    shown = markup.esc(markup.shorten(words, 140))
    return f' <span class="fb-muted" title="{markup.esc(words)}">· {shown}</span>'


def _values(alert: str, row: Row, instance: Instance | None) -> str:
    """Return the value when the state began, and where the evaluator tells, the worst and now's."""
    begun = value_words(alert, row["value"])
    if not begun:
        return ""
    words = t("began at {value}", value=begun)
    if instance is not None:
        words += t(", worst {worst}, now {now}", worst=value_words(alert, instance.worst),
                   now=value_words(alert, instance.value))  # fmt: skip
    return f" · {markup.esc(words)}"
