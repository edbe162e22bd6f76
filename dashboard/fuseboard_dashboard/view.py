"""What one refresh of a page sees: filters, window, zone, and the answers of the store."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_collector.errors import StoreError
from fuseboard_dashboard import markup, source, theme
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.data import CACHE, record
from fuseboard_dashboard.filters import Filters, Window, rfc3339
from fuseboard_dashboard.language import t
from fuseboard_dashboard.source import Source
from fuseboard_dashboard.zones import viewer_zone

logger = logging.getLogger("fuseboard.dashboard")

_WINDOW: Final = ("since", "until")
_NAMES: Final = ("tools", "regions")
_ALL: Final = (*_WINDOW, *_NAMES, "classes")
_OF_TRACE: Final = (*_WINDOW, "trace_id")
_BUCKETED: Final = (*_ALL, "bucket_us")
_BOUNDS: Final = ("bound_tools", "bound_seconds", "slow_seconds")

QUERY_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "page_alert_history": _WINDOW,
    "page_alerts_now": ("until",),
    "page_answer_ages": _BUCKETED,
    "page_answer_calls": (*_ALL, "outcomes", "sources", "classifiers", "row_limit"),
    "page_answer_causes": _ALL,
    "page_answer_kinds": _ALL,
    "page_answer_series": _BUCKETED,
    "page_answers": _ALL,
    "page_attempt_faults": _ALL,
    "page_attempt_latency": _ALL,
    "page_breaker_damage": (*_WINDOW, *_NAMES),
    "page_breaker_shares": (*_WINDOW, *_NAMES, "breakers", "bucket_us"),
    "page_breaker_states": (*_WINDOW, *_NAMES),
    "page_breaker_timeline": (*_WINDOW, *_NAMES, "breakers"),
    "page_breaker_transitions": (*_WINDOW, *_NAMES),
    "page_calls": (*_ALL, "kind", "args_hash", "row_limit"),
    "page_changes": (*_WINDOW, "before_since", "before_until", *_NAMES),
    "page_cost_series": (*_WINDOW, *_NAMES, "bucket_us"),
    "page_costs": (*_WINDOW, *_NAMES),
    "page_dependencies": _ALL,
    "page_error_arguments": _ALL,
    "page_error_kinds": _ALL,
    "page_error_matrix": _ALL,
    "page_facets": _WINDOW,
    "page_failed_layers": (*_WINDOW, *_NAMES),
    "page_incident_breakers": (*_WINDOW, *_NAMES),
    "page_incident_mutes": _WINDOW,
    "page_incident_series": (*_WINDOW, *_NAMES, "bucket_us"),
    "page_incident_slices": (*_WINDOW, *_NAMES),
    "page_incident_totals": (*_WINDOW, *_NAMES),
    "page_latency": _ALL,
    "page_latency_heatmap": _BUCKETED,
    "page_latency_series": _BUCKETED,
    "page_layer_calls": (*_WINDOW, *_NAMES, "failed_layer", "row_limit"),
    "page_lost_calls": (*_WINDOW, *_NAMES),
    "page_outcomes": _BUCKETED,
    "page_processes": ("seen_since", "until"),
    "page_retries": (*_WINDOW, *_NAMES),
    "page_series": _BUCKETED,
    "page_slo": (*_WINDOW, *_NAMES, *_BOUNDS),
    "page_slo_series": (*_WINDOW, *_NAMES, "bucket_us", *_BOUNDS),
    "page_session_agents": _WINDOW,
    "page_session_calls": (*_WINDOW, "session"),
    "page_session_found": (*_WINDOW, "session"),
    "page_session_spans": (*_WINDOW, "session", "traces"),
    "page_session_tokens": (*_WINDOW, "sessions"),
    "page_sessions": (*_ALL, "agents"),
    "page_store": (),
    "page_tools": _ALL,
    "page_totals": _ALL,
    "page_trace_attempts": _OF_TRACE,
    "page_trace_calls": _OF_TRACE,
    "page_trace_found": _OF_TRACE,
    "page_trace_spans": _OF_TRACE,
    "page_trace_transitions": _OF_TRACE,
    "page_trend": _BUCKETED,
    "page_unguarded_tools": _ALL,
    "page_upstream_calls": (*_ALL, "upstream", "kind", "row_limit"),
    "page_upstream_reach": (*_ALL, "upstream"),
    "page_upstream_series": (*_BUCKETED, "upstream"),
    "page_upstream_tools": (*_ALL, "upstream"),
}
"""The parameters of each page query: a query takes exactly its own."""


@dataclass(frozen=True)
class View:
    """One refresh of one page.

    Attributes:
        source: Where answers come from.
        filters: What the viewer chose.
        window: The time the page is about.
        zone: The viewer's zone.
        zone_name: Its name as shown.
        read_times: When the store was asked, for each answer so far.
    """

    source: Source
    filters: Filters
    window: Window
    zone: tzinfo
    zone_name: str
    read_times: list[datetime] = field(default_factory=list)

    @classmethod
    def now(cls, filters: Filters) -> View:
        """Return the view of this moment for the current session."""
        of = source.current()
        zone, zone_name = viewer_zone()
        return cls(of, filters, filters.window(of.clock()), zone, zone_name)

    def ask(self, name: str, **extra: object) -> pd.DataFrame:
        """Return the rows of a page query under the filters.

        Args:
            name: A key of ``QUERY_PARAMETERS``.
            extra: Parameters beyond the filters, or instead of them.
        """
        values = self.filters.parameters(self.window) | extra
        parameters = {key: values[key] for key in QUERY_PARAMETERS[name]}
        answer = CACHE.ask(self.source.reader, name, parameters, self.source.clock)
        self.read_times.append(answer.read_at)
        return answer.frame()

    def totals(self) -> dict[str, float]:
        """Return the row of ``page_totals``: the window in numbers."""
        return record(self.ask("page_totals"))

    def axis(self, most: int = 120) -> TimeAxis:
        """Return the time axis of the window in at most ``most`` buckets."""
        width = self.window.bucket_seconds(most)
        return TimeAxis(self.window, width, self.zone, self.zone_name)

    def buckets(self, name: str, axis: TimeAxis, **extra: object) -> pd.DataFrame:
        """Return the rows of a bucketed query in the buckets of ``axis``."""
        return self.ask(name, bucket_us=axis.bucket_seconds * 1_000_000, **extra)

    def with_filters(self, filters: Filters) -> View:
        """Return the same moment under other filters."""
        return replace(self, filters=filters)

    def before(self) -> View:
        """Return the window before, to tell what changed."""
        return replace(self, window=self.filters.before(self.window))

    def local(self, times: pd.Series) -> pd.Series:
        """Turn a column of UTC times into wall times of the viewer."""
        aware: pd.Series = times.dt.tz_localize(UTC).dt.tz_convert(self.zone)
        local: pd.Series = aware.dt.tz_localize(None)
        return local

    def clock(self, moment: datetime | None) -> str:
        """Format a UTC moment as the viewer's time of day, with the date if it isn't today's."""
        if moment is None or pd.isna(moment):
            return theme.NOTHING
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        local = aware.astimezone(self.zone)
        is_today = local.date() == self.window.until.astimezone(self.zone).date()
        return local.strftime("%H:%M:%S" if is_today else t("%d %b %H:%M:%S"))

    def ago(self, moment: datetime | None) -> str:
        """Format how long before the window's end a UTC moment was."""
        if moment is None or pd.isna(moment):
            return theme.NOTHING
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return theme.span(max(self.window.until - aware, timedelta(0)))

    def ends(self) -> str:
        """Return both ends of the window in the viewer's time, dated unless both are of today."""
        ends = [end.astimezone(self.zone) for end in (self.window.since, self.window.until)]
        today = self.source.clock().astimezone(self.zone)
        days = {end.date() for end in ends}
        is_of_this_year = {end.year for end in ends} == {today.year}
        form = t("%d %b %H:%M:%S") if is_of_this_year else t("%d %b %Y %H:%M:%S")
        is_dated = days != {today.date()}
        return " – ".join(
            end.strftime(form if is_dated and (number == 0 or len(days) > 1) else "%H:%M:%S")
            for number, end in enumerate(ends)
        )

    def stamp(self) -> str:
        """Return the markup that says when the data were read and which window they cover."""
        read_at = min(self.read_times, default=self.source.clock())
        state = "is-live" if self.filters.is_live else "is-still"
        words = t("data as of {time}", time=theme.clock_time(read_at, self.zone))
        pace = t("Live") if self.filters.is_live else t("Paused")
        since, until = self.window.since, self.window.until
        return (
            f'<span data-testid="fb-window" data-since="{rfc3339(since)}" '
            f'data-until="{rfc3339(until)}"><span class="fb-dot {state}"></span>'
            f"{markup.esc(pace)} · {markup.esc(self.ends())} {markup.esc(self.zone_name)} · "
            f"{markup.esc(words)}</span>"
        )

    def reading_stamp(self) -> str:
        """Return the markup that says when the data were read, on pages that are of no window."""
        read_at = min(self.read_times, default=self.source.clock())
        time = theme.clock_time(read_at, self.zone)
        words = t("data as of {time} {zone}", time=time, zone=self.zone_name)
        return f'<span data-testid="fb-read-at">{markup.esc(words)}</span>'


@contextmanager
def panel(title: str = "", words: str = "") -> Iterator[None]:
    """Draw a panel; a fault inside is shown in its place, the rest of the page goes on.

    Args:
        title: Its heading; empty = none.
        words: One line below the heading.
    """
    if title:
        st.html(markup.section(title, words))
    try:
        yield
    except Exception as fault:  # the next refresh tries again
        logger.warning("panel %r could not be drawn", title or "untitled", exc_info=True)
        st.html(markup.notice(_explain(fault), theme.SEVERITY_MARKS["warning"], "fb-problem"))


def _sentence(words: str) -> str:
    return words if words.endswith((".", "?", "!")) else f"{words}."


def _explain(fault: Exception) -> str:
    if isinstance(fault, StoreError):
        return t("The store did not answer: {why} The next refresh tries again.",
                 why=_sentence(str(fault)))  # fmt: skip
    return t(
        "This panel could not be drawn ({kind}: {fault}). The next refresh tries again; if it "
        "stays, the server's log has the details.", kind=type(fault).__name__, fault=fault,
    )  # fmt: skip
