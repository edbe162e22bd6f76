"""How many calls a sampled foreign span stands for (OpenTelemetry consistent sampling)."""

from __future__ import annotations

import re

_THRESHOLD = re.compile(r"(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,]|\s*$)")
_SPACE = 1 << 56


def weight(trace_state: str) -> float:
    """Return the adjusted count that ``ot=th:`` in a tracestate gives; 1 without it.

    The threshold is a 56-bit number in hex whose trailing zeros are left out; spans whose
    randomness is below it were dropped, so the rest stand for 2^56 / (2^56 - threshold).
    """
    if "th:" not in trace_state:
        return 1.0
    found = _THRESHOLD.search(trace_state)
    if found is None:
        return 1.0
    return _SPACE / (_SPACE - int(found.group(1).ljust(14, "0"), 16))
