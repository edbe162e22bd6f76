"""Hours are marked dirty once, and again as soon as anybody may have taken the mark away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from fuseboard_collector.store import Attempt, Batch, Store, ToolCall
from fuseboard_collector.store.marking import Marked
from fuseboard_collector.store.rows import to_arrow

Rows = Callable[[str], list[dict[str, Any]]]
NOON = datetime(2026, 11, 30, 12, 30)
HOUR = timedelta(hours=1)


def table(*ends: datetime, seconds: float = 1.0) -> list[Any]:
    return [to_arrow([ToolCall("a", end=end, duration_seconds=seconds) for end in ends])]


@pytest.fixture
def marked() -> Marked:
    """The hour from noon on has its mark."""
    found = Marked()
    found.note({"tool_calls": table(NOON)})
    return found


@pytest.mark.parametrize(
    ("rows", "covered"),
    [
        (table(NOON), True),
        (table(NOON, NOON + timedelta(minutes=29)), True),
        (table(NOON.replace(minute=0)), False),  # what ends on the hour belongs before it
        (table(NOON + HOUR), False),
        (table(NOON, NOON + HOUR), False),
        (table(NOON, NOON - 50 * HOUR), False),
        (table(NOON, seconds=3600.0), True),  # it began in another hour, which does not matter
    ],
)
def test_only_rows_of_marked_hours_go_without_a_mark(
    marked: Marked, rows: list[Any], covered: bool
) -> None:
    assert marked.covers("tool_calls", rows) is covered


def test_attempts_belong_to_hours_as_calls_do(marked: Marked) -> None:
    attempt = Attempt("ab" * 16, "cd" * 8, 1, NOON, 0.1, "a", "failure")
    assert marked.covers("attempts", [to_arrow([attempt])])
    attempt.duration_seconds = 3600.0
    assert not marked.covers("attempts", [to_arrow([attempt])])
    assert not marked.covers("heartbeats", [to_arrow([attempt])])


def test_nothing_is_known_after_another_transaction(marked: Marked) -> None:
    marked.forget()
    assert not marked.covers("tool_calls", table(NOON))


def test_calls_after_a_claim_are_marked_anew(store: Store, rows: Rows) -> None:
    for _ in range(2):
        store.append(Batch(calls=[ToolCall("a", end=NOON)])).result(10)
    assert {row["is_claimed"] for row in rows("dirty_spans")} == {False}
    store._command(lambda connection: connection.execute("DELETE FROM dirty_spans"))
    assert rows("dirty_spans") == []
    for _ in range(2):
        store.append(Batch(calls=[ToolCall("a", end=NOON)])).result(10)
    assert {(row["span"], row["hours"]) for row in rows("dirty_spans")} == {
        (datetime(2026, 11, 30, 12), 1),
        (datetime(2026, 11, 30, 12), 6),
        (datetime(2026, 11, 30), 24),
    }
