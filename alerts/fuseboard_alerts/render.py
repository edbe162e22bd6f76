"""What ``fuseboard alerts render`` and ``fuseboard alerts check`` do."""

from __future__ import annotations

import difflib
from pathlib import Path

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.targets.prometheus import DEFAULT_RUNBOOK_BASE, render_rules


def render_prometheus(runbook_base: str = DEFAULT_RUNBOOK_BASE) -> str:
    """Render the shipped alerts as a Prometheus rules file.

    Args:
        runbook_base: Address of the folder that holds your copy of the runbooks.

    Returns:
        YAML text, the same on every run.
    """
    return render_rules(CATALOGUE, runbook_base)


def check(path: Path, runbook_base: str = DEFAULT_RUNBOOK_BASE) -> list[str]:
    """Compare a rules file with the catalogue.

    Args:
        path: The file, as written by ``fuseboard alerts render``.
        runbook_base: The value it was rendered with.

    Returns:
        Lines of a unified diff; empty if the file is up to date.
    """
    wanted = render_prometheus(runbook_base).splitlines()
    if not path.is_file():
        return [f"{path} does not exist; write it with `fuseboard alerts render --output {path}`"]
    found = path.read_text(encoding="utf-8").splitlines()
    return list(difflib.unified_diff(found, wanted, str(path), "catalogue", lineterm=""))
