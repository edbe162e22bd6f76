"""Random faults have to be found by what changed: the benchmark of drills, with its bars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "what_changed.py"


@pytest.mark.parametrize(
    "drills", [2, pytest.param(20, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_the_cause_of_a_random_fault_is_ranked_first(drills: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(BENCHMARK), "--drills", str(drills)],
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": found in ") >= 0.95 * drills
