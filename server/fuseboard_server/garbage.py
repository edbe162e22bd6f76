"""How often Python looks for reference cycles in a server that decodes telemetry.

A request makes some thousand objects that all go when it is stored, without a cycle among them,
beside the half million that the dashboard's libraries keep for good. With Python's own settings
looking at both again and again took a seventh of the processor time of ingest.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (10_000, 10, 10)
"""New objects before the youngest are looked at, and how many such looks before older ones are."""


def calm() -> None:
    """Leave what the start made out of all later looks, and look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
