"""Which rollups there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLES: Final[Mapping[int, tuple[str, ...]]] = {
    1: (
        "calls_15m", "overall_15m", "steps_15m", "calls_h", "durations_h", "fault_durations_h",
        "attempt_durations_h", "fault_attempt_durations_h", "faults_h", "fault_arguments_h",
        "guards_h", "callers_h", "beats_h",
    ),
    6: (
        "calls_6h", "durations_6h", "fault_durations_6h", "attempt_durations_6h",
        "fault_attempt_durations_6h", "failed_attempts_6h", "faults_6h", "arguments_6h",
    ),
    24: (
        "calls_d", "durations_d", "fault_durations_d", "attempt_durations_d",
        "fault_attempt_durations_d", "failed_attempts_d", "faults_d", "arguments_d",
        "guards_d", "callers_d", "beats_d", "breakers_d", "breaker_steps_d",
    ),
}  # fmt: skip
"""Hours that are rolled up together → their tables; each has a query of its name in ``sql``."""
