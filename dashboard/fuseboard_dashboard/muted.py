"""Which alerts are muted, and the words for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from fuseboard_alerts.mutes import Mute, from_row, muted_by
from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import rfc3339


def moment(view: View) -> datetime:
    """Return when mutes are looked at: now, so that one just set is seen, or the window's end."""
    return view.source.clock() if view.filters.is_live else view.window.until


def in_force(view: View, when: datetime | None = None) -> list[Mute]:
    """Return the mutes that have not ended, the next to end first.

    Args:
        view: For the store and the moment.
        when: Another moment.
    """
    # Not from the cache: who has just muted something looks at once whether it is.
    found = view.source.reader.query("alert_mutes", {"until": rfc3339(when or moment(view))})
    return [from_row(row) for row in found.to_pylist()]


def unknown(why: Exception) -> str:
    """Return the notice that nobody knows what is muted."""
    words = t("Mutes could not be read ({why}): any of these alerts may be muted.", why=why)
    return markup.notice(words, theme.SEVERITY_MARKS["warning"], "fb-mutes-unknown")


def of(mutes: Sequence[Mute], view: View, row: Mapping[Any, Any]) -> Mute | None:
    """Return the mute of an alert instance.

    Args:
        mutes: Of :func:`in_force`.
        view: For the moment.
        row: A row of ``page_alerts_now``.
    """
    try:
        labels = json.loads(str(row["labels"]))
    except ValueError:
        labels = {}
    known = labels if isinstance(labels, dict) else {}
    return muted_by(mutes, moment(view), str(row["alert"]), str(row["severity"]), known)


def words(view: View, mute: Mute) -> str:
    """Return until when something is muted, by whom and why."""
    until = view.clock(mute.ends)
    if mute.author:
        return t("muted until {time} by {author}: {reason}", time=until, author=mute.author,
                 reason=mute.reason)  # fmt: skip
    return t("muted until {time}: {reason}", time=until, reason=mute.reason)


def about(mute: Mute) -> str:
    """Return what a mute matches."""
    parts = [mute.alert, mute.severity or t("any severity")]
    parts.append(mute.tool or t("any tool"))
    parts.append(mute.region or t("any region"))
    return " · ".join(parts)


def row(view: View, mute: Mute) -> str:
    """Return a mute as a line of markup."""
    mark = theme.MUTED
    values = {"id": mute.id, "alert": mute.alert, "tool": mute.tool or "",
              "region": mute.region or "", "ends": rfc3339(mute.ends)}  # fmt: skip
    hooks = " ".join(f'data-{key}="{markup.esc(value)}"' for key, value in values.items())
    return (
        f'<div class="fb fb-mute-row" style="--c:{mark.colour}" data-testid="fb-mute" {hooks}>'
        f'<span class="fb-symbol">{mark.symbol}</span><div><b>{markup.esc(about(mute))}</b>'
        f"<p>{markup.esc(words(view, mute))}</p></div></div>"
    )
