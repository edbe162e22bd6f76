"""The lines that pages draw and judge by: read from the alert catalogue, never written here."""

from __future__ import annotations

from typing import Final

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, Rule, Severity, SlowShare


def _rule(name: str, severity: Severity) -> Rule:
    return next(rule for rule in CATALOGUE if rule.name == name and rule.severity is severity)


def _above(name: str, severity: Severity = Severity.WARNING) -> float:
    condition = _rule(name, severity).condition
    if not isinstance(condition, Ratio | SlowShare):
        raise TypeError(f"alert {name!r} has no ratio to draw a line at")
    return condition.above


def _slower_than(name: str) -> float:
    condition = _rule(name, Severity.WARNING).condition
    if not isinstance(condition, SlowShare):
        raise TypeError(f"alert {name!r} has no latency to draw a line at")
    return condition.slower_than


RETRY_RATIO: Final = _above("ToolCallRetryRateHigh")
ERROR_RATIO: Final = _above("ToolCallErrorRatioHigh")
ERROR_RATIO_CRITICAL: Final = _above("ToolCallErrorRatioHigh", Severity.CRITICAL)
SLOW_SECONDS: Final = _slower_than("ToolCallSlow")
