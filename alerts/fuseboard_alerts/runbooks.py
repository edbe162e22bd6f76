"""The runbooks of the shipped alerts, wherever this installation keeps them."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from fuseboard_alerts.catalogue import rule_names


def runbook(name: str) -> str | None:
    """Return what to do about an alert.

    Args:
        name: Name of the alert.

    Returns:
        Markdown without the title; None for an alert that isn't shipped.
    """
    if name not in rule_names():
        return None
    for folder in _folders():
        page = folder.joinpath(f"{name}.md")
        if page.is_file():
            return page.read_text(encoding="utf-8").removeprefix(f"# {name}\n").strip()
    return None


def _folders() -> tuple[Traversable, ...]:
    # A wheel carries the pages inside the package, a checkout beside it.
    return files(__package__).joinpath("runbook_pages"), Path(__file__).parents[1] / "runbooks"
