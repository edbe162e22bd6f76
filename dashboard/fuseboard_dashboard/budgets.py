"""Error budgets: what is left of them, and how fast they burn.

After the Google SRE workbook, chapter 5, "Alerting on SLOs", section 6 ("Multiwindow, Multi-Burn-
Rate Alerts"): budget = (1 − target) × calls of the period; burn rate of a window = share of bad
calls in it / (1 − target), so that 1 spends exactly the budget by the end of the period. A pair of
windows burns too fast where both are above its threshold: the share of the budget that the
long one would spend × period / long window. ``docs/objectives.md`` says it in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import pandas as pd

from fuseboard_dashboard.objectives import ObjectiveBook

WINDOWS: Final[dict[str, timedelta]] = {
    "5m": timedelta(minutes=5),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "3d": timedelta(days=3),
}
"""Windows that burn rates are measured over."""

SHOWN: Final = ("5m", "1h", "6h", "3d")
AHEAD: Final = "1h"
"""The window whose rate tells when the budget will be gone."""

KINDS: Final[dict[str, tuple[str, str]]] = {
    "availability": ("judged", "errors"),
    "latency": ("calls", "slow"),
    "correctness": ("answered", "unsound"),
}
"""Objective → its columns of ``page_slo``: all calls that count, and the bad ones among them."""

LEAST_BAD: Final = 3
"""Bad calls that the long window of a pair, and a forecast, need: fewer may be chance."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two windows that burn too fast together.

    Attributes:
        long: Keeps a few bad calls from counting.
        short: Ends the verdict soon after the trouble ended.
        spent: Share of the budget that the long one would spend at the threshold.
        state: What it makes of an objective.
    """

    long: str
    short: str
    spent: float
    state: str

    def threshold(self, period: timedelta) -> float:
        """Return the burn rate from which on both windows are too fast; never below 1."""
        return max(1.0, self.spent * (period / WINDOWS[self.long]))


PAIRS: Final = (
    Pair("1h", "5m", 0.02, "fast"),
    Pair("6h", "30m", 0.05, "fast"),
    Pair("3d", "6h", 0.10, "slow"),
)
"""The workbook's recommended parameters: 14.4, 6 and 1 for a period of 30 days."""

STATES: Final = ("fast", "gone", "slow", "fine", "few")
"""Worst first. few = too few calls for a verdict: less than one bad call is allowed, and the bad
ones may be chance."""


def thresholds(period: timedelta) -> dict[str, float]:
    """Return the burn rate that is too fast for each window; of two pairs the higher."""
    found: dict[str, float] = {}
    for pair in PAIRS:
        for name in (pair.long, pair.short):
            found[name] = max(found.get(name, 0.0), pair.threshold(period))
    return found


def budgets(
    period: pd.DataFrame, windows: Mapping[str, pd.DataFrame], book: ObjectiveBook
) -> pd.DataFrame:
    """Return one row per tool and objective, the worst first.

    Args:
        period: Rows of ``page_slo`` over the period.
        windows: The same over each of ``WINDOWS``.
        book: What is asked of the tools.

    Returns:
        Columns tool, kind, target, total, bad, achieved, left (share of the budget, below 0 where
        more was spent), burn_… and bad_… of each window (NaN where it had no calls), seconds_left
        (NaN where the budget lasts, or few
        bad calls tell nothing), state and rank (0 = worst state).
    """
    rows = [_of_kind(kind, period, windows, book) for kind in KINDS]
    found = pd.concat(rows, ignore_index=True)
    worst = found[[f"burn_{name}" for name in SHOWN]].max(axis=1).fillna(0.0)
    ordered = found.assign(worst_burn=worst).sort_values(
        ["rank", "left", "worst_burn", "total", "tool", "kind"],
        ascending=[True, True, False, False, True, True], kind="stable",
    )  # fmt: skip
    return ordered.drop(columns="worst_burn").reset_index(drop=True)


def _of_kind(
    kind: str, period: pd.DataFrame, windows: Mapping[str, pd.DataFrame], book: ObjectiveBook
) -> pd.DataFrame:
    whole, part = KINDS[kind]
    targets = _targets(kind, period["tool"], book)
    known = targets.notna() & (period[whole] > 0)
    total, bad = (period.loc[known, name].astype("float64").to_numpy() for name in (whole, part))
    target = targets[known].to_numpy()
    found = pd.DataFrame(
        {
            "tool": period.loc[known, "tool"].to_numpy(), "kind": kind, "target": target,
            "total": total, "bad": bad, "achieved": 1 - bad / total,
            # 1 − 0.99 is not quite 0.01: a budget that is spent exactly has nothing left.
            "left": np.round(1 - bad / ((1 - target) * total), 9),
        }
    )  # fmt: skip
    for name, frame in windows.items():
        mine = frame.set_index("tool").reindex(found["tool"])
        totals = mine[whole].fillna(0.0).astype("float64").to_numpy()
        bads = mine[part].fillna(0.0).astype("float64").to_numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            found[f"burn_{name}"] = np.where(totals > 0, bads / totals, np.nan) / (1 - target)
        found[f"bad_{name}"] = bads
    return _judged(found, book.period)


def _targets(kind: str, tools: pd.Series, book: ObjectiveBook) -> pd.Series:
    """Return the target of each tool, NaN where nothing is asked of it."""
    targets = pd.Series(book.default.target(kind), index=tools.index, dtype="float64")
    own = {name: each.target(kind) for name, each in book.tools.items()}
    has_own = tools.isin(list(own))
    return targets.mask(has_own, tools.where(has_own).map(own).astype("float64"))


def _judged(found: pd.DataFrame, period: timedelta) -> pd.DataFrame:
    """Add when the budget will be gone, and the state."""
    allowed = (1 - found["target"]) * found["total"]
    per_second = found[f"bad_{AHEAD}"] / WINDOWS[AHEAD].total_seconds()
    is_spending = (
        (found[f"burn_{AHEAD}"] > 1) & (found["left"] > 0) & (found[f"bad_{AHEAD}"] >= LEAST_BAD)
    )
    seconds = ((allowed - found["bad"]) / per_second.where(per_second > 0)).where(is_spending)
    state = pd.Series("fine", index=found.index)
    for pair in reversed(PAIRS):
        least = pair.threshold(period)
        is_fast = (
            (found[f"burn_{pair.long}"] > least)
            & (found[f"burn_{pair.short}"] > least)
            & (found[f"bad_{pair.long}"] >= LEAST_BAD)
        )
        state = state.mask(is_fast, pair.state)
    state = state.mask((found["left"] <= 0) & (state != "fast"), "gone")
    is_little = (allowed < 1 - 1e-9) & (found["bad"] < LEAST_BAD)
    state = state.mask(is_little, "few")
    ranks = {name: rank for rank, name in enumerate(STATES)}
    return found.assign(seconds_left=seconds, state=state, rank=state.map(ranks).astype("int64"))


def burn_down(series: pd.DataFrame, kind: str, target: float) -> pd.Series:
    """Return what is left of the budget at the end of each bucket, 1 = all of it.

    Args:
        series: Rows of ``page_slo_series``, one per bucket of the period, 0 where there were none.
        kind: Objective.
        target: Its share.

    Returns:
        1 − bad calls so far / bad calls that the period's calls allow; it ends at what is left now.
    """
    whole, part = KINDS[kind]
    allowed = (1 - target) * float(series[whole].sum())
    if allowed <= 0:
        return pd.Series(np.nan, index=series.index)
    left: pd.Series = 1 - series[part].cumsum() / allowed
    return left
