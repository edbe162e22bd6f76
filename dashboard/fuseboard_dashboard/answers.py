"""Where answers came from: the tool itself, its cache, or what stood in for it; and why."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from fuseboard.classification.network import CONNECT_TIMEOUT, TIMEOUT
from fuseboard.classification.sdk_errors import (
    ATTEMPT_TIMEOUT,
    BUDGET,
    CIRCUIT_OPEN,
    LIMIT,
    SESSION_BUDGET,
    THREADS,
)
from fuseboard.conventions import Outcome, ResultSource
from fuseboard_dashboard import theme
from fuseboard_dashboard.language import t
from fuseboard_dashboard.theme import ratio

LIVE: Final = "live"
"""The tool's own, whole answer of this moment; every other kind is one of ``ANSWER_MARKS``."""

STAND_INS: Final = ("default", "fallback", "stale", "untold")
"""Kinds of degraded answers: the live call failed or was rejected."""

UNTOLD_SOURCE: Final = "unknown"
"""What ``page_answer_calls`` takes for a source that is none of those that stand in."""

_DEGRADED: Final[dict[object, str]] = {
    ResultSource.CACHE.value: "stale",
    ResultSource.FALLBACK.value: "fallback",
    ResultSource.DEFAULT.value: "default",
}
_OF_KIND: Final[dict[str, tuple[tuple[Outcome, ...], str | None]]] = {
    "default": ((Outcome.DEGRADED, Outcome.OK), ResultSource.DEFAULT),
    "fallback": ((Outcome.DEGRADED, Outcome.OK), ResultSource.FALLBACK),
    "stale": ((Outcome.DEGRADED,), ResultSource.CACHE),
    "untold": ((Outcome.DEGRADED,), UNTOLD_SOURCE),
    "partial": ((Outcome.PARTIAL,), None),
    "cache": ((Outcome.OK,), ResultSource.CACHE),
}


def kind(outcome: object, source: object) -> str:
    """Return the kind of an answer, a key of ``ANSWER_MARKS`` or ``LIVE``.

    Args:
        outcome: Of the call: ``ok``, ``partial`` or ``degraded``.
        source: ``result_source`` of the call; None where it was not told.
    """
    if outcome == Outcome.DEGRADED:
        return _DEGRADED.get(source, "untold")
    if outcome == Outcome.PARTIAL:
        return "partial"
    if source == ResultSource.CACHE:
        return "cache"
    # What the shim serves from a fallback is degraded; others may call it ok.
    return _DEGRADED.get(source, LIVE)


def with_kinds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows with ``outcome`` and ``result_source`` and the column ``kind`` beside them."""
    pairs = zip(frame["outcome"], frame["result_source"], strict=True)
    return frame.assign(kind=pd.Series([kind(*pair) for pair in pairs], frame.index, dtype=object))


def chosen(wanted: str | None) -> dict[str, object]:
    """Return the parameters of ``page_answer_calls`` for one kind, or for all but the live ones."""
    outcomes, source = _OF_KIND.get(wanted or "", ((Outcome.DEGRADED, Outcome.PARTIAL), None))
    return {
        "outcomes": [outcome.value for outcome in outcomes],
        "sources": None if source is None else [str(source)],
    }


def by_place(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per tool and region: calls of each kind, and the oldest answer.

    Args:
        frame: Rows of ``page_answers`` with their kinds.

    Returns:
        ``tool``, ``region``, ``judged``, a column per kind, ``oldest`` (seconds, of answers that
        are not live), ``degraded`` and its share; the most degraded calls first.
    """
    unreal = frame[frame["kind"] != LIVE]
    keys = ["tool", "region"]
    counts = unreal.pivot_table(index=keys, columns="kind", values="calls", aggfunc="sum")
    counts = counts.reindex(columns=list(theme.ANSWER_MARKS)).fillna(0.0)
    grouped = unreal.groupby(keys)
    counts["judged"] = grouped["judged"].first()
    counts["oldest"] = grouped["oldest"].max()
    counts["degraded"] = counts[list(STAND_INS)].sum(axis=1)
    counts["degraded_ratio"] = counts["degraded"] / counts["judged"].where(counts["judged"] > 0)
    order = ["degraded", "partial", "cache", *keys]
    table = counts.reset_index().rename_axis(columns=None)
    return table.sort_values(order, ascending=[False] * 3 + [True] * 2, kind="stable")


def caches(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per tool and region that a cache answered for, or answered live beside one.

    Args:
        frame: Rows of ``page_answers`` with their kinds.

    Returns:
        ``tool``, ``region``, ``judged``, ``hits``, ``stale``, ``hit_ratio`` (hits over judged
        calls), and the ages of hits in seconds (``age_p50``, ``age_p95``, ``oldest``).
    """
    ages = ("age_p50", "age_p95", "oldest")
    is_hit = frame["kind"] == "cache"
    is_live = (frame["kind"] == LIVE) & (frame["result_source"] == ResultSource.LIVE.value)
    parts = {
        "hits": frame["calls"].where(is_hit, 0.0),
        "stale": frame["calls"].where(frame["kind"] == "stale", 0.0),
        "beside": frame["confident"].where(is_live, 0.0),
        **{name: frame[name].where(is_hit) for name in ages},
    }
    sums = dict.fromkeys(("hits", "stale", "beside"), "sum") | dict.fromkeys(ages, "max")
    grouped = frame.assign(**parts).groupby(["tool", "region"], sort=True, as_index=False)
    table = grouped.agg({"judged": "first", **sums})
    table = table[table[["hits", "stale", "beside"]].gt(0).any(axis=1)]
    table["hit_ratio"] = table["hits"] / table["judged"].where(table["judged"] > 0)
    columns = ["tool", "region", "judged", "hits", "stale", "hit_ratio", *ages]
    return table[columns].sort_values("judged", ascending=False, kind="stable")


def cache_hit_ratio(frame: pd.DataFrame) -> float | None:
    """Return hits over judged calls of all places with a cache; None without one."""
    table = caches(frame)
    return ratio(float(table["hits"].sum()), float(table["judged"].sum()))


def cause(row: Any) -> str:
    """Return in a few words what kept an answer from being the real thing.

    Args:
        row: A row of ``page_answer_causes``.
    """
    words = {
        CIRCUIT_OPEN: t("Breaker open, no attempt made"),
        ATTEMPT_TIMEOUT.classifier_id: t("Attempt timed out"),
        TIMEOUT.classifier_id: t("Timed out"),
        CONNECT_TIMEOUT.classifier_id: t("Connecting timed out"),
        LIMIT.classifier_id: t("Over our own limit"),
        THREADS.classifier_id: t("Over our own limit"),
        BUDGET.classifier_id: t("Time budget used up"),
        SESSION_BUDGET.classifier_id: t("Session budget used up"),
    }
    found = words.get(row.classifier_id)
    if found is not None:
        return found
    if row.outcome == Outcome.PARTIAL:
        return t("Parts of the answer failed")
    return t("Live call failed")
