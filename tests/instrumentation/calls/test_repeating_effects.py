"""HC-24: what may have taken effect is repeated only where that does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from scripted_tools import BOTH, QUICK, Script, make_tool, status_error

import fuseboard
from fuseboard import (
    AttemptTimeoutError,
    Fallback,
    Policy,
    Retry,
)

AMBIGUOUS = [TimeoutError(), ConnectionResetError(), status_error(502), RuntimeError("?")]
REFUSALS = [ConnectionRefusedError(), status_error(429), status_error(503, **{"retry-after": "0"})]


@BOTH
@pytest.mark.parametrize("fault", AMBIGUOUS[:3], ids=repr)
@pytest.mark.parametrize(
    ("options", "effects"),
    [
        ({}, 1),
        ({"effects": "unsafe"}, 1),
        ({"effects": "idempotent"}, 3),
        ({"effects": "none"}, 3),
        ({"idempotency_key": lambda arguments: "k"}, 3),
    ],
    ids=["default", "unsafe", "idempotent", "none", "key"],
)
def test_hc_24_ambiguous_faults_are_repeated_only_where_it_does_no_harm(
    telemetry: Any, is_async: bool, fault: Exception, options: dict[str, Any], effects: int
) -> None:
    script = Script(fault)
    with pytest.raises(type(fault)):
        make_tool(script, Policy(retry=QUICK, **options), is_async=is_async)()
    assert script.runs == effects
    assert len(telemetry.last.attempts) == effects


@BOTH
@pytest.mark.parametrize("fault", REFUSALS, ids=repr)
@pytest.mark.parametrize("effects", ["unsafe", "idempotent", "none"])
def test_hc_24_refusals_prove_that_nothing_happened(
    telemetry: Any, is_async: bool, fault: Exception, effects: Any
) -> None:
    script = Script(fault, fault, "done")
    tool = make_tool(script, Policy(retry=QUICK, effects=effects), is_async=is_async)
    assert tool() == "done"
    assert script.runs == 3


@pytest.mark.parametrize("effects", ["unsafe", "none"])
def test_hc_24_our_own_timeout_is_ambiguous(telemetry: Any, effects: Any) -> None:
    sent = []

    @fuseboard.tool(policy=Policy(retry=Retry(attempts=2, wait_initial=0), timeout=0.05,
                                  effects=effects))  # fmt: skip
    async def send_email() -> None:
        sent.append(1)
        await asyncio.sleep(60)

    with pytest.raises(AttemptTimeoutError):
        asyncio.run(send_email())
    assert len(sent) == (1 if effects == "unsafe" else 2)


def test_hc_24_unknown_faults_are_never_retried(telemetry: Any) -> None:
    script = Script(RuntimeError("?"))
    with pytest.raises(RuntimeError):
        make_tool(script, Policy(retry=QUICK, effects="none"))()
    assert script.runs == 1


@pytest.mark.parametrize(
    ("fault", "fallback_effects", "runs"),
    [
        (TimeoutError(), "unsafe", 0),
        (TimeoutError(), "none", 1),
        (ConnectionRefusedError(), "unsafe", 1),
    ],
)
def test_hc_24_fallback_that_acts_is_passed_over_when_the_tool_may_have_acted(
    telemetry: Any, fault: Exception, fallback_effects: Any, runs: int
) -> None:
    other = Script("sent by another provider")
    policy = Policy(fallback=Fallback(other, effects=fallback_effects))
    tool = make_tool(Script(fault), policy)
    if runs:
        assert tool() == "sent by another provider"
    else:
        with pytest.raises(type(fault)):
            tool()
    assert other.runs == runs


@BOTH
def test_hc_24_attempts_share_the_key_and_differ_in_the_request(
    telemetry: Any, is_async: bool
) -> None:
    keys, requests = [], []

    def note() -> None:
        current = fuseboard.current_call()
        assert current is not None
        keys.append(current.idempotency_key)
        requests.append(current.request_id)
        raise ConnectionRefusedError

    tool = make_tool(note, Policy(retry=QUICK), is_async=is_async)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            tool()
    assert len(set(keys[:3])) == len(set(keys[3:])) == 1
    assert keys[0] != keys[3]
    assert requests[:3] == [f"{keys[0]}:{n}" for n in (1, 2, 3)]
    assert fuseboard.current_call() is None


def test_key_made_from_the_arguments(telemetry: Any) -> None:
    seen = []

    @fuseboard.tool(policy=Policy(idempotency_key=lambda arguments: f"order-{arguments['n']}"))
    def order(n: int) -> None:
        current = fuseboard.current_call()
        assert current is not None
        seen.append(current.request_id)

    order(7)
    assert seen == ["order-7:1"]


KEY_IDS = ["none", "empty", "object", "coroutine"]


class Awaitable:
    """As what an async function returns, with a text of its own."""

    def __await__(self) -> Iterator[None]:
        yield

    def __repr__(self) -> str:
        return "<coroutine object at 0x7f00>"


@pytest.mark.parametrize("nothing", [None, "", object(), Awaitable()], ids=KEY_IDS)
def test_a_key_that_says_nothing_is_no_key(telemetry: Any, nothing: Any) -> None:
    telemetry.may_fault = True
    keys: list[str] = []

    @fuseboard.tool(policy=Policy(idempotency_key=lambda arguments: nothing))
    def order(number: int) -> None:
        current = fuseboard.current_call()
        assert current is not None
        keys.append(current.idempotency_key)

    order(1)
    order(2)
    assert len(set(keys)) == 2, "a server would take both orders for one"
    assert all(len(key) > 8 for key in keys)
