"""Which rollups there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLES: Final[Mapping[int, tuple[str, ...]]] = {
    1: (
        "calls_15m", "calls_h", "durations_h", "fault_durations_h", "attempt_durations_h",
        "fault_attempt_durations_h", "guards_h", "callers_h", "beats_h",
    ),
    6: (
        "calls_6h", "durations_6h", "fault_durations_6h", "attempt_durations_6h",
        "fault_attempt_durations_6h", "failed_attempts_6h", "faults_6h", "arguments_6h",
    ),
}  # fmt: skip
"""Hours that are rolled up together → their tables; each has a query of its name in ``sql``."""
