"""What is said of when foreign calls show is what the code does."""

from __future__ import annotations

from pathlib import Path

from fuseboard_collector.store import staging

PAGE = (Path(__file__).parents[2] / "docs" / "other-instrumentation.md").read_text()
SECTION = " ".join(PAGE[PAGE.index("## When calls show") :].split())


def test_the_times_are_those_of_the_code() -> None:
    assert (
        f"came for {staging.GRACE_SECONDS:g} s, or {staging.LONGEST_WAIT_SECONDS:g} s after"
    ) in SECTION
    assert f"for {staging.HORIZON_SECONDS / 3600:g} hours to that end" in SECTION
    assert f"If {staging.MAX_STAGED:,} spans of tools wait" in SECTION
