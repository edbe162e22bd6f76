"""Which of the spans that a collector gets tell of a tool call that nobody else has counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.instrumentation.telemetry.fake_collector import FakeCollector, as_dict

import fuseboard
from fuseboard.conventions import DUPLICATE, EXECUTE_TOOL, GEN_AI_OPERATION_NAME, OUTCOME


def counted(spans: Iterable[Any]) -> list[tuple[str, bool]]:
    """Return (name, whether it is fuseboard's) of each span that counts as a call."""
    found = []
    for span in spans:
        attributes = as_dict(span.attributes)
        tells_of_a_call = (
            attributes.get(GEN_AI_OPERATION_NAME) == EXECUTE_TOOL
            or attributes.get("openinference.span.kind") == "TOOL"
            or attributes.get("mcp.method.name") == "tools/call"
        )
        if tells_of_a_call and not attributes.get(DUPLICATE):
            found.append((span.name, OUTCOME in attributes))
    return found


def received(collector: FakeCollector) -> list[Any]:
    """Return all spans that were sent so far."""
    assert fuseboard.flush(10)
    return collector.spans()


def marked(spans: Iterable[Any]) -> list[str]:
    """Return the names of the spans that are marked as duplicates."""
    return [span.name for span in spans if as_dict(span.attributes).get(DUPLICATE)]
