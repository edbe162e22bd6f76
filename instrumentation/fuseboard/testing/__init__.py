"""For tests of agents: what their tools were called with and what came of it, time, and faults.

Works with :func:`fuseboard.init` and without it; nothing here needs a test framework.
"""

from fuseboard.testing.capturing import CapturedCalls, capture, reset
from fuseboard.testing.clocks import FakeClock
from fuseboard.testing.faults import PASS, Delay, ForcedFaults, forced_faults
from fuseboard.testing.records import CapturedAttempt, CapturedCall

__all__ = [
    "PASS",
    "CapturedAttempt",
    "CapturedCall",
    "CapturedCalls",
    "Delay",
    "FakeClock",
    "ForcedFaults",
    "capture",
    "forced_faults",
    "reset",
]
