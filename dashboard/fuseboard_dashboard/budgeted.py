"""What the page of objectives asks the store: budgets over their period, and the windows in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd

from fuseboard_dashboard.budgets import WINDOWS, budgets
from fuseboard_dashboard.filters import rfc3339
from fuseboard_dashboard.objectives import ObjectiveBook
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Budgeted:
    """All budgets at the end of a view's window.

    Attributes:
        period: What budgets are of: it begins with a whole day (UTC).
        kept_since: Begin of the oldest call, where the period has fewer days than it should.
        rows: What :func:`~fuseboard_dashboard.budgets.budgets` returned.
    """

    period: Window
    kept_since: datetime | None
    rows: pd.DataFrame


def period_of(until: datetime, book: ObjectiveBook) -> Window:
    """Return the period that ends at a moment; it begins with the first whole day in it.

    No older calls are kept by default, and rollups alone answer for its oldest part.
    """
    since = until - book.period
    late = (since - _EPOCH) % _DAY
    return Window(since + (_DAY - late if late else timedelta(0)), until)


def budgeted(view: View) -> Budgeted:
    """Return the budgets of all tools under a view's filters."""
    book = view.source.objectives
    until = view.window.until
    period = period_of(until, book)
    whole = _ask(view, period)
    windows = {name: _ask(view, Window(until - length, until)) for name, length in WINDOWS.items()}
    first = view.ask("page_store")["first_start"][0]
    kept = None if pd.isna(first) else pd.Timestamp(first).to_pydatetime().replace(tzinfo=UTC)
    is_short = kept is not None and kept > period.since
    return Budgeted(period, kept if is_short else None, budgets(whole, windows, book))


def _ask(view: View, window: Window) -> pd.DataFrame:
    return view.ask("page_slo", since=rfc3339(window.since), until=rfc3339(window.until),
                    **view.source.objectives.bounds())  # fmt: skip
