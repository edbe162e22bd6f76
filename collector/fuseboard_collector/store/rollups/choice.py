"""How a query is answered: from the raw rows, exactly, or with the help of rollups.

Counts are equal either way, but for those of arguments: of each tool and six hours (and day)
rollups keep the fifty arguments that failed most often, and up to a hundred that failed more than
once. What failed less often in that time is not counted there. Quantiles are exact in windows of up
to 25 hours, and come out of histograms in longer ones: within a step of 9 %, mostly much closer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Final, TypeAlias

import duckdb

from fuseboard_collector.store.named_queries import NamedQuery, Statement, load, text
from fuseboard_collector.store.rollups.plan import Lengths, Stock, plan
from fuseboard_collector.store.rollups.tables import TABLES

Connection = duckdb.DuckDBPyConnection
Variants: TypeAlias = tuple[str, ...]

EXACT_WINDOW: Final = timedelta(hours=25)
"""The longest window whose quantiles are exact: a day, begun at a whole hour."""

SORTED_WINDOW: Final = timedelta(hours=1)
"""The longest window whose durations are all sorted; in longer ones only those near a quantile."""

_MICROSECOND: Final = timedelta(microseconds=1)
_QUARTER_US: Final = timedelta(minutes=15) // _MICROSECOND
_HOUR_US: Final = timedelta(hours=1) // _MICROSECOND
_SIX_HOURS_US: Final = timedelta(hours=6) // _MICROSECOND
_DAY_US: Final = timedelta(days=1) // _MICROSECOND
_FOLDER: Final = "rollups/sql"

_OVERALL: Final = frozenset(
    {"page_latency_heatmap", "page_latency_series", "page_outcomes", "page_series", "page_totals"}
)
"""Queries that tell no tools and regions apart, unless some are chosen."""

_NARROWING: Final = ("tools", "regions", "classes")

_LISTED: Final = ("listed", "guided")

_PARTS: Final = {
    "dirty": ("dirty_since", "dirty_until"),
    "sixes": ("six_since", "six_until"),
    "days": ("day_since", "day_until"),
    "whole": ("kept_since", "last_day"),
    "cut": ("cut_since", "cut_until"),
    "stale": ("stale_day_since", "stale_day_until"),
}
"""Variants that look at rows which a plan may have → their bounds in it."""


def choose(
    cursor: Connection, query: NamedQuery, bound: Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    """Return the SQL and the parameters that answer a query.

    Opens a transaction on the cursor where the answer depends on the state of rollups: both have
    to be of one moment.

    Args:
        cursor: On which the query will run.
        query: As readers name it.
        bound: Its parameters, checked.
    """
    variants, lengths = _variants(query.name, bound)
    window = _window(bound)
    if window is None:
        return _ready(query, variants, bound)
    if "slowest" in variants and (least := _slow_bound(cursor, window, bound)) is not None:
        return _ready(query, ("outstanding", *variants), {**bound, "slow_bound": least})
    is_exact = "sketched" not in variants and _measures(query.name)
    is_keyed, is_kept = _depends(query.name, "keyed"), _depends(query.name, "kept")
    if lengths is not None or is_exact or is_keyed:
        cursor.execute("BEGIN")
    if is_keyed:
        variants = (*_keyed(cursor, window), *variants)
    if is_exact:
        variants, lengths = _exact(cursor, window, query.name, bound, variants, lengths)
    if (
        lengths is not None
        and is_kept
        and not (_is_filtered(bound) and _holds(cursor, "has_shared_breakers"))
    ):
        variants = ("kept", *variants)
    if lengths is not None:
        planned = plan(*window, _stock(cursor), lengths)
        bound, variants = {**bound, **planned}, (*variants, *_parts(planned))
    return _ready(query, variants, bound)


def _variants(name: str, bound: Mapping[str, object]) -> tuple[Variants, Lengths | None]:
    """Return the variants of a query, and which rollups it may use; None if none."""
    if bound.get("kind") == "slow":
        return ("slowest",), None
    window = _window(bound)
    if window is None or not _depends(name, "rolled", ("keyed", "sketched")):
        return (), None
    needed = _parameters(name)
    if "head_until" not in needed and "last_hour" in needed:
        return ("rolled",), Lengths(hours=True, sixes=False, days=False)
    width = bound.get("bucket_us")
    step = width if isinstance(width, int) and width > 0 else _DAY_US
    # A bucket can only be put together from rollups that it holds whole.
    rolled = _rolled(step)
    is_sketched = window[1] - window[0] > EXACT_WINDOW and "quartered" not in rolled
    is_helped = is_sketched or _depends(name, "rolled") or _depends(name, "rolled", _LISTED)
    if not rolled or not is_helped:
        return (), None
    lengths = Lengths(
        hours="hour_since" in needed,
        sixes="six_since" in needed and step % _SIX_HOURS_US == 0,
        days="day_since" in needed and step % _DAY_US == 0,
    )
    if name in _OVERALL and not any(bound.get(item) is not None for item in _NARROWING):
        rolled, lengths = ("overall", *rolled), Lengths(hours=True, sixes=False, days=False)
    if not is_sketched:
        # Longer rollups keep only some of the arguments.
        keeps_all = not _depends(name, "keyed")
        return rolled, lengths if keeps_all else replace(lengths, sixes=False, days=False)
    if "overall" in rolled:
        return ("stepped", *rolled, "sketched"), lengths
    is_classed = bound.get("classes") is not None
    return (*(("classed",) if is_classed else ()), *rolled, "sketched"), lengths


def _keyed(cursor: Connection, window: tuple[datetime, datetime]) -> Variants:
    """Return the variants that tell arguments apart by number, and by text where some have none."""
    has_texts = _holds(cursor, "has_texts", {"since": window[0], "until": window[1]})
    return ("texted", "keyed") if has_texts else ("keyed",)


def _exact(
    cursor: Connection,
    window: tuple[datetime, datetime],
    name: str,
    bound: Mapping[str, object],
    variants: Variants,
    lengths: Lengths | None,
) -> tuple[Variants, Lengths | None]:
    """Return how exact quantiles are found, and which rollups may help.

    In short windows all durations are sorted; in longer ones only those near a quantile: counts
    tell which these are. Rows that stand for several calls are added up one by one.
    """
    times = {"since": window[0], "until": window[1]}
    if _holds(cursor, "has_sampled", times):
        return ("weighted", *variants), lengths
    # Few calls have a class, and durations are not listed by it.
    is_classed = bound.get("classes") is not None and _depends(name, "classed", ("sketched",))
    if window[1] - window[0] <= SORTED_WINDOW or is_classed:
        return variants, lengths
    if lengths is not None and "quartered" not in variants:
        return (*_LISTED, *variants), replace(lengths, hours=True, days=False)
    if _holds(cursor, "lacks_steps", times):
        return variants, lengths
    return (*(("tallied",) if "overall" in variants else ()), "guided", *variants), lengths


def _rolled(step: int) -> Variants:
    """Return the variants whose counts make up buckets of so many microseconds."""
    if step % _HOUR_US == 0:
        return ("rolled",)
    return () if step % _QUARTER_US else ("quartered", "rolled")


def _parts(planned: Mapping[str, object]) -> Variants:
    """Return the variants that a plan needs: even an empty part costs the engine time."""
    return tuple(
        part for part, (since, until) in _PARTS.items() if planned[since] != planned[until]
    )


def _slow_bound(
    cursor: Connection, window: tuple[datetime, datetime], bound: Mapping[str, object]
) -> object:
    """Return a duration that the slowest calls of a window reach, in seconds; None if unknown."""
    if bound.get("classes") is not None or bound.get("args_hash") is not None:
        return None
    cursor.execute("BEGIN")
    planned = plan(*window, _stock(cursor), Lengths(hours=True, sixes=True, days=False))
    statement = load("slow_bound", _FOLDER).statements[0]
    given = {**bound, **planned}
    wanted = {key: given[key] for key in statement.parameters}
    ((least,),) = cursor.execute(statement.sql, wanted).fetchall()
    return least


def _is_filtered(bound: Mapping[str, object]) -> bool:
    return any(bound.get(name) is not None for name in ("tools", "regions"))


def _holds(cursor: Connection, name: str, given: Mapping[str, object] | None = None) -> bool:
    """Return the answer to a question of yes or no."""
    sql = load(name, _FOLDER).statements[0].sql
    return cursor.execute(sql, given or {}).fetchall() == [(True,)]


def _window(bound: Mapping[str, object]) -> tuple[datetime, datetime] | None:
    """Return the window of a query as naive UTC, if it has one that makes sense."""
    since, until = (_moment(bound.get(name)) for name in ("since", "until"))
    return (since, until) if since is not None and until is not None and since < until else None


def _moment(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, datetime) and value.tzinfo is None else None


def _stock(cursor: Connection) -> Stock:
    ((first, last),) = cursor.execute(load("rolled_range", _FOLDER).statements[0].sql).fetchall()
    dirty = cursor.execute(load("dirty_spans", _FOLDER).statements[0].sql).fetchall()
    return Stock(
        first,
        last,
        *(frozenset(span for span, hours in dirty if hours == length) for length in TABLES),
    )


def _ready(
    query: NamedQuery, variants: Variants, bound: Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    chosen = load(query.name, variants=variants) if variants else query
    statement = chosen.statements[0]
    return statement.sql, {key: bound[key] for key in statement.parameters}


@cache
def _depends(name: str, variant: str, beside: Variants = ()) -> bool:
    """Return whether a query has fragments of a variant."""
    return text(name, variants=beside) != text(name, variants=(variant, *beside))


@cache
def _measures(name: str) -> bool:
    """Return whether a query looks at single durations."""
    return _depends(name, "weighted") or _depends(name, "guided")


@cache
def _parameters(name: str) -> frozenset[str]:
    """Return the parameters that a query takes with all its rollups."""
    statements: tuple[Statement, ...] = load(
        name, variants=("rolled", "keyed", "sketched", *_PARTS)
    ).statements
    return statements[0].parameters
