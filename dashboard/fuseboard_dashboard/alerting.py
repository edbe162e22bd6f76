"""Alerts as the board and the Alerts page show them."""

from __future__ import annotations

import json

import pandas as pd

from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.view import View


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


def alert_tool(labels: str) -> str | None:
    """Return the tool that an alert instance is about, if it is about one."""
    try:
        found = json.loads(labels).get("tool")
    except (ValueError, AttributeError):
        return None
    return None if found is None else str(found)


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
        lines += f"<div>{markup.link(markup.esc(more), view.filters.link('alerts'))}</div>"
    return f'<div class="fb fb-alerts">{lines}</div>'


def _line(view: View, row: dict[object, object] | dict[str, object]) -> str:
    alert, state, severity = str(row["alert"]), str(row["state"]), str(row["severity"])
    labels = str(row["labels"])
    mark = theme.mark(theme.SEVERITY_MARKS, severity)
    if state != "firing":
        mark = theme.mark(theme.ALERT_STATE_MARKS, state)
    words = theme.mark(theme.ALERT_STATE_MARKS, state).label
    begun = row["fired_at"] if state == "firing" else row["active_at"]
    since = view.ago(begun if isinstance(begun, pd.Timestamp) else None)
    tool = alert_tool(labels)
    filters = view.filters if tool is None else view.filters.narrowed(tool=tool)
    what = markup.link(f"<b>{markup.esc(alert)}</b>", filters.link("tool" if tool else "alerts"))
    about = label_words(labels)
    pending = "" if state == "firing" else " is-pending"
    return (
        f'<div class="fb-alert{pending}" style="--c:{mark.colour}" data-testid="fb-alert" '
        f'data-alert="{markup.esc(alert)}" data-state="{markup.esc(state)}" '
        f'data-severity="{markup.esc(severity)}">'
        f"<span>{markup.badge(mark, severity.capitalize(), loud=state == 'firing')}</span>"
        f'<span class="fb-what" title="{markup.esc(about[:500])}">{what} &nbsp;'
        f"{markup.esc(markup.shorten(about, 110))}</span>"
        f'<span class="fb-when">{markup.esc(words)} for {markup.esc(since)}'
        f"{_value(alert, row['value'])}</span></div>"
    )


def _value(alert: str, value: object) -> str:
    if not isinstance(value, float) or theme.is_missing(value) or not 0 <= value <= 1:
        return ""
    return (
        "" if alert.endswith(("Open", "Absent")) else f" · now {markup.esc(theme.percent(value))}"
    )
