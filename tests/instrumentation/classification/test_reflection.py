"""S2.5: partial failures are said to the model in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import fuseboard


@dataclass
class Sent:
    count: int
    partial_failures: list[Any] = field(default_factory=list)


FAILED = {"item": "order 7", "reason": "unknown address", "retryable": False}
LATE = {"item": "order 9", "reason": "timed out", "retryable": True}


def test_it_says_what_failed_why_and_what_may_be_done() -> None:
    hint = fuseboard.reflection_hint({"sent": 2, "partial_failures": [FAILED, LATE]})
    assert hint == (
        "2 parts failed: order 7 (unknown address, will fail again as it is); "
        "order 9 (timed out, may be tried again). Everything else was done: do not ask for it "
        "again. Deal with what failed before you go on, or say that it is missing."
    )


@pytest.mark.parametrize(
    "result", [None, 7, "text", {}, {"partial_failures": []}, {"partial_failures": "two"}, Sent(3)]
)
def test_whole_results_need_no_words(result: Any) -> None:
    assert fuseboard.reflection_hint(result) is None


def test_objects_are_read_as_mappings_are() -> None:
    hint = fuseboard.reflection_hint(Sent(1, [Sent(2), {"item": 4}, "order 5"]))
    assert hint is not None
    assert hint.startswith("3 parts failed: a part without a name; 4; order 5. ")


def test_it_is_bounded_and_redacted() -> None:
    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no")

    failures: list[Any] = [
        {"item": Hostile(), "reason": "https://u:p@host/path?token=abc"},
        {"item": "a\nb", "reason": "password=hunter2"},
        {"item": "x" * 1000},
        *[{"item": number} for number in range(100)],
    ]
    hint = fuseboard.reflection_hint({"partial_failures": failures})
    assert hint is not None
    assert hint.startswith("103 parts failed: <unreadable> (https://host/path); a b (password=***)")
    assert "and 93 more. " in hint
    assert len(hint) < 1000
