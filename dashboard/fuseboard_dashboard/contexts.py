"""What models read: their spans tell how many tokens, and thereby how a context grew."""

from __future__ import annotations

from typing import Final

import pandas as pd

from fuseboard_dashboard.theme import ratio

_SUMS: Final = ("invoke_agent", "invoke_workflow", "create_agent")
"""Operations whose spans add up what the models within them read."""


def of_models(spans: pd.DataFrame) -> pd.DataFrame:
    """Return the spans that tell of one model call's tokens, in time.

    Spans of agents tell the sum of what lies within them: they count only where no model's does.

    Args:
        spans: Rows with ``operation``, ``input_tokens``, ``output_tokens`` and ``start``.
    """
    told = spans[spans["input_tokens"].notna() | spans["output_tokens"].notna()]
    own = told[~told["operation"].isin(_SUMS)]
    return (own if len(own) else told).sort_values("start", kind="stable", ignore_index=True)


def growth(reads: pd.Series) -> float | None:
    """Return how many times as much as at first a model read at most.

    Args:
        reads: Input tokens of the calls of a model, in time.
    """
    known = reads.dropna()
    return ratio(float(known.max()), float(known.iloc[0])) if len(known) else None


def by_session(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what the models of each session read and wrote, indexed by session.

    Args:
        rows: Of ``page_session_tokens``: one for each kind of span.
    """
    is_sum = rows["operation"].isin(_SUMS)
    has_own = set(rows.loc[~is_sum, "session"])
    kept = rows[~(is_sum & rows["session"].isin(has_own))]
    return kept.groupby("session").agg(
        read_tokens=("read_tokens", "sum"), written_tokens=("written_tokens", "sum"),
        first_read=("first_read", "first"), most_read=("most_read", "max"),
    )  # fmt: skip
