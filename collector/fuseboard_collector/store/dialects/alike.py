"""Macros that stand for the same in every engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ALIKE: Final[Mapping[str, str]] = {
    # By how much a process with its breaker in a state adds to the number of the closed ones, and
    # to those of the others in one: 15 bits each, from unknown over half_open and open to isolated.
    "closed_in": "CAST(CASE {0} WHEN 'closed' THEN 1 ELSE 0 END AS BIGINT)",
    "held_in": "CAST(CASE {0} WHEN 'isolated' THEN 35184372088832 WHEN 'open' THEN 1073741824 "
    "WHEN 'half_open' THEN 32768 WHEN 'closed' THEN 0 ELSE 1 END AS BIGINT)",
    # The former from the latter of one process.
    "none": "CAST(CASE {0} WHEN 0 THEN 1 ELSE 0 END AS BIGINT)",
    # The worst state of several processes from these numbers: 4 isolated, 3 open, 2 half_open,
    # 1 unknown, which is also that of none, 0 closed.
    "severity": "CASE WHEN {1} >= 35184372088832 THEN 4 WHEN {1} >= 1073741824 THEN 3 "
    "WHEN {1} >= 32768 THEN 2 WHEN {1} >= 1 THEN 1 WHEN {0} >= 1 THEN 0 ELSE 1 END",
}
