"""Wrapping LangChain, and leaving it as it was."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.prebuilt import ToolNode
from tests.instrumentation.conftest import RecordingTelemetry

from fuseboard import ConfigurationError
from fuseboard.adapters import instrument_langchain, uninstrument_langchain

WRAPPED = [
    (BaseTool, "run"), (BaseTool, "arun"), (ToolNode, "_validate_tool_call"),
    (StructuredTool, "_run"), (StructuredTool, "_arun"),
]  # fmt: skip


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return city


def _present() -> list[Any]:
    return [vars(owner)[name] for owner, name in WRAPPED]


def test_everything_is_restored(telemetry: RecordingTelemetry) -> None:
    before = _present()
    instrument_langchain()
    weather.invoke({"city": "Oslo"})
    assert all(now is not then for now, then in zip(_present(), before, strict=True))
    uninstrument_langchain()
    assert all(now is then for now, then in zip(_present(), before, strict=True))
    weather.invoke({"city": "Oslo"})
    assert len(telemetry.calls) == 1


def test_a_second_installation_wraps_nothing_twice(telemetry: RecordingTelemetry) -> None:
    before = _present()
    instrument_langchain()
    weather.invoke({"city": "Oslo"})
    wrapped = _present()
    instrument_langchain()
    weather.invoke({"city": "Oslo"})
    assert all(now is then for now, then in zip(_present(), wrapped, strict=True))
    assert len(telemetry.calls) == 2
    uninstrument_langchain()
    assert all(now is then for now, then in zip(_present(), before, strict=True))


def test_a_wrapper_on_top_stays_and_ours_is_switched_off(
    telemetry: RecordingTelemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    instrument_langchain()
    ours = vars(BaseTool)["run"]

    @functools.wraps(ours)
    def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(self.name)
        return ours(self, *args, **kwargs)

    monkeypatch.setattr(BaseTool, "run", theirs)
    weather.invoke({"city": "Oslo"})
    uninstrument_langchain()
    assert vars(BaseTool)["run"] is theirs
    weather.invoke({"city": "Oslo"})
    assert (len(telemetry.calls), seen) == (1, ["weather", "weather"])
    instrument_langchain()
    weather.invoke({"city": "Oslo"})
    assert (len(telemetry.calls), len(seen)) == (2, 3)
    monkeypatch.undo()
    uninstrument_langchain()
    assert not hasattr(vars(BaseTool)["run"], "__wrapped__")


def test_a_wrong_policy_is_named(telemetry: RecordingTelemetry) -> None:
    with pytest.raises(ConfigurationError, match=r"instrument_langchain\(policy=3\)"):
        instrument_langchain(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="mapping of tools' names"):
        instrument_langchain({"weather": "often"})  # type: ignore[dict-item]
    assert not hasattr(vars(BaseTool)["run"], "__wrapped__")
