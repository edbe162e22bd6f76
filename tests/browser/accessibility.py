"""What axe-core says of a page, without what only Streamlit could mend."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

IMPACTS = ("serious", "critical")

STREAMLITS: dict[tuple[str, str], str] = {}
"""(rule, part of the element's markup) → why it is not ours: looked up in Streamlit's own DOM."""


def violations(page: Page) -> list[str]:
    """Return serious and critical violations that are ours, one line for each element."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {_why(node)}"
        for one in found
        if one["impact"] in IMPACTS
        for node in one["nodes"]
        if not any(rule == one["id"] and part in node["html"] for rule, part in STREAMLITS)
    ]


def _why(node: dict[str, Any]) -> str:
    checks = [*node["any"], *node["all"], *node["none"]]
    return str(checks[0]["message"]) if checks else ""
