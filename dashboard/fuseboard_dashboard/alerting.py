"""Alerts as the board and the Alerts page show them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import pandas as pd

from fuseboard.conventions import ErrorClass
from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, SlowShare
from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.view import View

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
_SUMMARIES: Final = {rule.name: rule.summary for rule in CATALOGUE}
_RATIOS: Final = frozenset(
    rule.name for rule in CATALOGUE if isinstance(rule.condition, Ratio | SlowShare)
)


FIRING: Final = "firing"


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
        return "everything"
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
    words = (
        f"Alert time scale {scale:g}: all alert windows and hold times are multiplied by "
        f"{scale:g} (5 minutes become {f'{300 * scale:g} s'}). For demonstrations; real "
        "time is --alert-time-scale 1."
    )
    return markup.notice(words, theme.SEVERITY_MARKS["warning"], "fb-time-scale")


def strip(view: View, frame: pd.DataFrame, most: int = 6) -> str:
    """Return the active alerts as a stack of lines, most urgent first.

    Args:
        view: For times and links.
        frame: Rows of ``page_alerts_now``.
        most: Lines before the rest is summed up.
    """
    rows = frame.head(most).to_dict("records")
    lines = "".join(_line(view, row) for row in rows)
    if len(frame) > most:
        more = f"{len(frame) - most} more on the Alerts page"
        link = markup.link(markup.esc(more), view.filters.link("alerts"))
        lines += f'<div class="fb-more">{link}</div>'
    return f'<div class="fb fb-alerts">{lines}</div>'


def _line(view: View, row: dict[object, object] | dict[str, object]) -> str:
    alert, state, severity = str(row["alert"]), str(row["state"]), str(row["severity"])
    labels = str(row["labels"])
    mark = theme.mark(theme.SEVERITY_MARKS, severity)
    if state != FIRING:
        mark = theme.mark(theme.ALERT_STATE_MARKS, state)
    words = theme.mark(theme.ALERT_STATE_MARKS, state).label
    begun = row["fired_at"] if state == FIRING else row["active_at"]
    since = view.ago(begun if isinstance(begun, pd.Timestamp) else None)
    what = markup.link(f"<b>{markup.esc(alert)}</b>", cause_link(alert, labels, view.filters))
    about = label_words(labels)
    title = f"{_SUMMARIES.get(alert, '')} {about[:500]}"
    pending = "" if state == FIRING else " is-pending"
    return (
        f'<div class="fb-alert{pending}" style="--c:{mark.colour}" data-testid="fb-alert" '
        f'data-alert="{markup.esc(alert)}" data-state="{markup.esc(state)}" '
        f'data-severity="{markup.esc(severity)}">'
        f"<span>{markup.badge(mark, severity.capitalize(), loud=state == 'firing')}</span>"
        f'<span class="fb-what" title="{markup.esc(title)}">{what} &nbsp;'
        f"{markup.esc(markup.shorten(about, 110))}</span>"
        f'<span class="fb-when">{markup.esc(words)} for {markup.esc(since)}'
        f"{_value(alert, row['value'])}</span></div>"
    )


def _value(alert: str, value: object) -> str:
    # The history has the value of the moment when the state began, not today's.
    words = value_words(alert, value)
    return f" · began at {markup.esc(words)}" if words else ""
