"""HC-17: a pause or a hand-over is neither retried, replaced nor counted as a failure."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_tools import BOTH, QUICK, Script, make_tool

import fuseboard
from fuseboard import (
    Breaker,
    Fallback,
    Outcome,
    Policy,
)


class GraphInterrupt(Exception):  # noqa: N818
    __module__ = "langgraph.errors"


class Approval(GraphInterrupt):
    """A user's own kind of pause."""


@BOTH
@pytest.mark.parametrize("cls", [GraphInterrupt, Approval])
def test_hc_17_control_flow_is_no_failure(telemetry: Any, is_async: bool, cls: Any) -> None:
    pause = cls({"question": "book?"})
    script = Script(pause)
    policy = Policy(
        retry=QUICK,
        breaker=Breaker(minimum_throughput=2),
        fallback=Fallback(value="instead"),
        effects="none",
    )
    tool = make_tool(script, policy, is_async=is_async)
    for _ in range(5):
        with pytest.raises(cls) as caught:
            tool()
        assert caught.value is pause
    assert script.runs == 5
    assert {call.outcome for call in telemetry.calls} == {Outcome.INTERRUPTED}
    assert telemetry.transitions == []


def test_hc_17_users_own_interrupt(telemetry: Any) -> None:
    class AskHuman(Exception):  # noqa: N818
        pass

    @fuseboard.classifier
    def pauses(error: BaseException) -> Any:
        return Outcome.INTERRUPTED if isinstance(error, AskHuman) else None

    with pytest.raises(AskHuman):
        make_tool(Script(AskHuman()), Policy(retry=QUICK, fallback=Fallback(value=1)))()
    assert telemetry.last.outcome is Outcome.INTERRUPTED
