"""What the store knows of a window: everything that a timeline is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd

from fuseboard_dashboard import changed, theme
from fuseboard_dashboard.alerting import place_of
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.changes import MEASURES, Change, changes
from fuseboard_dashboard.data import record
from fuseboard_dashboard.filters import Filters, rfc3339
from fuseboard_dashboard.language import t
from fuseboard_dashboard.slices import Cells
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window

LOOK_BACK: Final = timedelta(days=1)
"""A process or a version is new that sent no heartbeat in so long before the window."""
BUCKETS: Final = 120


@dataclass(frozen=True)
class Evidence:
    """Answers of the store for one window under a viewer's filters; times are naive UTC.

    Attributes:
        window: The window.
        filters: Pinned to the window and of all classes, so that a link shows the same numbers.
        bucket: Width of the buckets of series and calls.
        alerts: Rows of ``page_alert_history``, oldest first.
        firing_before: Rows of ``page_alerts_now`` at the window's start.
        mutes: Rows of ``page_incident_mutes``.
        transitions: Rows of ``page_breaker_transitions``, oldest first.
        breakers: Rows of ``page_incident_breakers``.
        slices: Rows of ``page_incident_slices``.
        series: Rows of ``page_incident_series``.
        calls: Calls by bucket of the window, 0 where there were none.
        first_start: When the first call of all began; None where there is none.
        totals: The row of ``page_incident_totals``.
        all_calls: Calls that these are of.
        counted: The part of the window that slices and totals are of.
        processes: Rows of ``page_processes``, from a day before the window on.
        rises: What changed surely, the most telling first.
        untold: Why nothing is said of what changed; empty if it is.
        note: What part of the window bad calls are counted in, if not in all of it.
    """

    window: Window
    filters: Filters
    bucket: timedelta
    alerts: pd.DataFrame
    firing_before: pd.DataFrame
    mutes: pd.DataFrame
    transitions: pd.DataFrame
    breakers: pd.DataFrame
    slices: pd.DataFrame
    series: pd.DataFrame
    calls: pd.Series
    first_start: datetime | None
    totals: dict[str, Any]
    all_calls: float
    counted: Window
    processes: pd.DataFrame
    rises: tuple[Change, ...]
    untold: str = ""
    note: str = ""

    @property
    def since(self) -> datetime:
        """Return the window's start as the store writes times."""
        return naive(self.window.since)

    @property
    def until(self) -> datetime:
        """Return the window's end as the store writes times."""
        return naive(self.window.until)


def naive(moment: datetime) -> datetime:
    """Return a moment in UTC without its zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def gather(view: View) -> Evidence:
    """Ask the store for everything about a view's window."""
    axis = view.axis(BUCKETS)
    outcomes = view.buckets("page_outcomes", axis, classes=None)
    calls = axis.fill(outcomes.groupby("bucket", as_index=False)[["calls"]].sum(), ["calls"])
    first = view.ask("page_store")["first_start"][0]
    rises, untold = _rises(view)
    shorter, is_cut = bounded(view)
    note = ""
    if is_cut:
        note = t("Bad calls are counted in the last {span} only: there are too many calls in the "
                 "window.", span=theme.span(shorter.window.length))  # fmt: skip
    return Evidence(
        window=view.window,
        filters=replace(view.filters.zoomed(view.window), classes=()),
        bucket=timedelta(seconds=axis.bucket_seconds),
        alerts=_mine(view, view.ask("page_alert_history")).iloc[::-1],
        firing_before=_mine(view, view.ask("page_alerts_now", until=rfc3339(view.window.since))),
        mutes=_muted(view),
        transitions=view.ask("page_breaker_transitions").iloc[::-1],
        breakers=view.ask("page_incident_breakers"),
        slices=shorter.ask("page_incident_slices"),
        series=view.buckets("page_incident_series", axis),
        calls=calls["calls"],
        first_start=None if pd.isna(first) else first.to_pydatetime(),
        totals=record(shorter.ask("page_incident_totals")),
        all_calls=shorter.totals()["calls"],
        counted=shorter.window,
        processes=view.ask("page_processes", seen_since=rfc3339(view.window.since - LOOK_BACK)),
        rises=rises,
        untold=untold,
        note=note,
    )


def moments(view: View, counted: Window, tool: str, window: Window) -> pd.DataFrame:
    """Return the rows of ``page_incident_slices`` of one tool in a part of the window.

    Args:
        view: For the store and the regions.
        counted: What may be counted of the window; single calls before it are not read.
        tool: The tool.
        window: The part.
    """
    since = min(max(window.since, counted.since), window.until)
    return view.ask("page_incident_slices", tools=[tool], since=rfc3339(since),
                    until=rfc3339(window.until))  # fmt: skip


def _mine(view: View, alerts: pd.DataFrame) -> pd.DataFrame:
    """Return the alerts of the chosen tools and regions, and those that are about neither."""
    chosen = (view.filters.tools, view.filters.regions)
    if not any(chosen) or not len(alerts):
        return alerts

    def is_mine(labels: object) -> bool:
        return all(
            not wanted or value is None or value in wanted
            for wanted, value in zip(chosen, place_of(str(labels)), strict=True)
        )

    return alerts[alerts["labels"].map(is_mine)]


def _muted(view: View) -> pd.DataFrame:
    """Return the mutes that concern the chosen tools and regions."""
    mutes = view.ask("page_incident_mutes")
    for name, wanted in (("tool", view.filters.tools), ("region", view.filters.regions)):
        if wanted:
            mutes = mutes[mutes[name].isna() | mutes[name].isin(wanted)]
    return mutes


def _rises(view: View) -> tuple[tuple[Change, ...], str]:
    """Return what changed for sure, or why nothing is told of it."""
    if view.totals()["calls"] > changed.MOST_CALLS:
        return (), changed.too_many()
    frame, _ = changed.compared(view)
    if frame is None:
        return (), changed.nothing_before()
    cells = Cells(frame)
    found = [change for measure in MEASURES for change in changes(cells, measure)]
    sure = sorted((each for each in found if each.is_sure), key=lambda each: -each.score)
    return tuple(sure[: changed.SURE_SHOWN]), ""
