"""HC-49: however many names a model invents, metrics and spans know one more tool, ``_other``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.instrumentation.telemetry.conftest import (  # noqa: F401 - fixtures of this test
    clean_setup,
    collector,
    registry,
    start,
)
from tests.instrumentation.telemetry.fake_collector import FakeCollector, as_dict

import fuseboard
from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls.invocation import Invocation
from fuseboard.conventions import GEN_AI_TOOL_NAME, METRIC_CALLS, METRIC_LABEL_OVERFLOW


@pytest.fixture
def calls(start: Callable[..., None]) -> Iterator[FrameworkCalls]:  # noqa: F811
    start()
    made = FrameworkCalls("instrument_it")
    made.configure(None)
    return made


def test_hc_49_ten_thousand_invented_names_are_one_tool(
    calls: FrameworkCalls,
    registry: CollectorRegistry,  # noqa: F811
    collector: FakeCollector,  # noqa: F811
) -> None:
    calls.run(Invocation("weather"), lambda: "sunny")
    for number in range(10_000):
        calls.refuse_unknown(Invocation(f"invented_{number}"))
    samples: list[Any] = [
        sample
        for family in registry.collect()
        for sample in family.samples
        if sample.labels.get("tool")
    ]
    assert {sample.labels["tool"] for sample in samples} == {"weather", "_other"}
    counted = [s for s in samples if s.name == METRIC_CALLS and s.labels["tool"] == "_other"]
    assert sum(sample.value for sample in counted) == 10_000
    assert registry.get_sample_value(METRIC_LABEL_OVERFLOW, {"label": "tool"}) >= 10_000
    fuseboard.flush(20)
    names = {as_dict(span.attributes).get(GEN_AI_TOOL_NAME) for span in collector.spans()}
    assert names == {"weather", "_other"}
