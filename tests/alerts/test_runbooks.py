"""Every alert has a runbook that the dashboard finds."""

from __future__ import annotations

import pytest

from fuseboard_alerts.catalogue import rule_names
from fuseboard_alerts.runbooks import runbook


@pytest.mark.parametrize("name", rule_names())
def test_every_alert_has_a_runbook_without_its_title(name: str) -> None:
    page = runbook(name)
    assert page is not None
    assert page.startswith("## Meaning")
    for section in ("## Impact", "## Diagnosis", "## Mitigation"):
        assert section in page


@pytest.mark.parametrize("name", ["", "NoSuchAlert", "../runbooks/ToolCallSlow"])
def test_there_is_no_other_runbook(name: str) -> None:
    assert runbook(name) is None
