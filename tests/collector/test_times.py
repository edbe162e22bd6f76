"""Periods that can't be true are put right and marked; true ones are kept to the nanosecond."""

from __future__ import annotations

from typing import Any

import pytest

from fuseboard_collector.normalise.times import (
    CLOCK_AHEAD,
    CLOCK_NOT_SET,
    NEGATIVE_DURATION,
    TIME_MISSING,
    Period,
    instant,
    period,
)

RECEIVED = 1_796_050_000_000_000
NOW = RECEIVED * 1000
SECOND = 10**9
DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (NOW - 2 * SECOND, NOW - SECOND, (-2, -1, 1.0, ())),
        (NOW - 2 * SECOND, NOW - 2 * SECOND, (-2, -2, 0.0, ())),
        (NOW - 40 * DAY, NOW - SECOND, (-40 * 86_400, -1, 40 * 86_400 - 1, ())),
        (NOW, NOW + 100 * SECOND, (0, 100, 100.0, ())),
        # A clock that is ahead is believed, up to a day.
        (NOW + 3600 * SECOND, NOW + 3601 * SECOND, (3600, 3601, 1.0, (CLOCK_AHEAD,))),
        (NOW + 2 * DAY, NOW + 2 * DAY + SECOND, (-1, 0, 1.0, (CLOCK_NOT_SET,))),
        # Seconds after the epoch: a clock that starts at 1970.
        (5 * SECOND, 8 * SECOND, (-3, 0, 3.0, (CLOCK_NOT_SET,))),
        (5 * SECOND, 5 * SECOND + 3 * DAY, (0, 0, 0.0, (CLOCK_NOT_SET,))),
        # Set in between: only one of the times is true.
        (5 * SECOND, NOW - SECOND, (-1, -1, 0.0, (CLOCK_NOT_SET,))),
        (NOW - SECOND, 2**64 - 1, (-1, -1, 0.0, (CLOCK_NOT_SET,))),
        (NOW - SECOND, NOW - 2 * SECOND, (-1, -1, 0.0, (NEGATIVE_DURATION,))),
        (2**64 - 1, 5, (0, 0, 0.0, (CLOCK_NOT_SET,))),
        (0, 0, (0, 0, 0.0, (TIME_MISSING,))),
        (NOW - SECOND, 0, (-1, -1, 0.0, (TIME_MISSING,))),
        (0, NOW - SECOND, (-1, -1, 0.0, (TIME_MISSING,))),
        (0, 7, (0, 0, 0.0, (CLOCK_NOT_SET,))),
    ],
)
def test_periods(start: int, end: int, expected: tuple[Any, ...]) -> None:
    begins, ends, seconds, marks = expected
    found = period(start, end, RECEIVED)
    assert found == Period(
        RECEIVED + begins * 1_000_000, RECEIVED + ends * 1_000_000, seconds, marks
    )


def test_nanoseconds_are_kept_in_the_duration() -> None:
    found = period(NOW - 1_000_000_001, NOW, RECEIVED)
    assert found.duration_seconds == 1.000000001


@pytest.mark.parametrize("ns", [0, -1, 5 * SECOND, NOW + 2 * DAY, 2**64 - 1])
def test_a_log_record_without_a_true_time_happened_when_it_arrived(ns: int) -> None:
    assert instant(ns, RECEIVED) == RECEIVED
    assert instant(NOW - 1000, RECEIVED) == RECEIVED - 1


@pytest.mark.parametrize("ours", [True, False])
def test_the_mark_is_stored_with_the_call(
    otlp: Any, send: Any, rows: Any, until: Any, ours: bool
) -> None:
    given = {} if ours else {"attributes": otlp.attributes(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})}  # fmt: skip
    span = {**otlp.span(startTimeUnixNano="5", endTimeUnixNano="2000000005"), **given}
    send(otlp.traces(span, scope="fuseboard" if ours else "gen_ai"))
    until(lambda: rows("tool_calls"), "the assembly of the call")
    (row,) = rows("tool_calls")
    assert row["attributes"]["fuseboard.received.marks"] == [CLOCK_NOT_SET]
    assert row["end"] == row["received_at"]
    assert row["duration_seconds"] == 2.0
