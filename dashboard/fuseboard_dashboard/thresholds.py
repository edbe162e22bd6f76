"""The lines that pages draw and judge by: read from the alert catalogue, never written here."""

from __future__ import annotations

from typing import Final

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, Rule, Severity, SlowShare


def _rule(name: str, severity: Severity) -> Rule:
    return next(rule for rule in CATALOGUE if rule.name == name and rule.severity is severity)


def _ratio(name: str, severity: Severity = Severity.WARNING) -> Ratio:
    condition = _rule(name, severity).condition
    if not isinstance(condition, Ratio):
        raise TypeError(f"alert {name!r} has no ratio to draw a line at")
    return condition


def _slow(name: str) -> SlowShare:
    condition = _rule(name, Severity.WARNING).condition
    if not isinstance(condition, SlowShare):
        raise TypeError(f"alert {name!r} has no latency to draw a line at")
    return condition


RETRIES: Final = _ratio("ToolCallRetryRateHigh")
ERRORS: Final = _ratio("ToolCallErrorRatioHigh")
ERRORS_CRITICAL: Final = _ratio("ToolCallErrorRatioHigh", Severity.CRITICAL)
SLOW: Final = _slow("ToolCallSlow")

RETRY_RATIO: Final = RETRIES.above
ERROR_RATIO: Final = ERRORS.above
ERROR_RATIO_CRITICAL: Final = ERRORS_CRITICAL.above
SLOW_SECONDS: Final = SLOW.slower_than
