"""The pages in the order of the menu: one question at 3 a.m. each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fuseboard_dashboard.language import t
from fuseboard_dashboard.screens import (
    alerts,
    board,
    breakers,
    degradation,
    dependencies,
    errors,
    incident,
    latency,
    retries,
    sessions,
    slos,
    tool,
    trace,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One page.

    Attributes:
        path: Its name in the URL.
        title: Its name in the menu, in the viewer's language when called.
        icon: Name of its Material symbol.
        draw: What draws it.
    """

    path: str
    title: Callable[[], str]
    icon: str
    draw: Callable[[], None]


MENU: Final = (
    Entry("board", lambda: t("Board"), "dashboard", board.page),
    Entry("tool", lambda: t("Tool"), "build", tool.page),
    Entry("errors", lambda: t("Errors"), "error", errors.page),
    Entry("breakers", lambda: t("Breakers"), "toggle_off", breakers.page),
    Entry("retries", lambda: t("Retries"), "replay", retries.page),
    Entry("latency", lambda: t("Latency"), "timer", latency.page),
    Entry("degradation", lambda: t("Degradation"), "layers", degradation.page),
    Entry("sessions", lambda: t("Sessions"), "forum", sessions.page),
    Entry("trace", lambda: t("Trace"), "account_tree", trace.page),
    Entry("dependencies", lambda: t("Dependencies"), "hub", dependencies.page),
    Entry("slos", lambda: t("SLOs"), "target", slos.page),
    Entry("alerts", lambda: t("Alerts"), "notifications", alerts.page),
    Entry("incident", lambda: t("Incident"), "history", incident.page),
)
"""The first is where a bare address leads."""
