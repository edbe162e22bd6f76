"""Breakers by hand, breakers that open because a tool is slow, and breakers per instance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    Breaker,
    BreakerState,
    CircuitOpenError,
    ConfigurationError,
    ErrorClass,
    Limit,
    Policy,
    Retry,
    guard,
)
from fuseboard.conventions import OTHER_LABEL
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit
from fuseboard.policy.registry import MAX_BREAKERS

CLOSED, OPEN, HALF_OPEN, ISOLATED = BreakerState
SLOW = Breaker(minimum_throughput=4, break_duration=10, slow_call_seconds=2, slow_call_ratio=0.5)


class Timed:
    """A tool that takes as long as the test says, on the test's clock."""

    def __init__(self, clock: Any, policy: Policy, name: str = "timed") -> None:
        @fuseboard.tool(name=name, policy=policy)
        def timed(seconds: float, error: BaseException | None = None) -> str:
            clock.move(seconds)
            if error is not None:
                raise error
            return "ok"

        @fuseboard.tool(name=name, policy=policy)
        async def later(seconds: float) -> str:
            clock.move(seconds)
            return "ok"

        self.run = timed
        self.later = later


def reasons(telemetry: Any) -> list[tuple[str, str, str]]:
    return [(t.from_state.value, t.to_state.value, t.reason) for t in telemetry.transitions]


# --- Slow calls ---------------------------------------------------------------------------


def test_slow_calls_open_the_breaker(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    for seconds in (2.0, 2.1, 0.1):
        tool.run(seconds)
    assert fuseboard.breaker("timed").state is CLOSED, "below the throughput; 2 s is not above 2"
    tool.run(5.0)
    assert reasons(telemetry) == [("closed", "open", "slow_call_ratio")]
    (opened,) = telemetry.transitions
    assert (opened.calls, opened.failures, opened.failure_ratio) == (4, 0, 0.0)
    assert opened.error_class is ErrorClass.L3_TRANSIENT
    with pytest.raises(CircuitOpenError) as caught:
        tool.run(0.0)
    assert caught.value.error_class is ErrorClass.L3_TRANSIENT


def test_quick_successes_that_were_not_counted_yet_are_weighed(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    for seconds in (0.1, 0.1, 0.1, 0.1, 0.1, 3, 3, 3):
        tool.run(seconds)
    assert fuseboard.breaker("timed").state is CLOSED, "3 of 8"
    tool.run(3)
    assert fuseboard.breaker("timed").state is CLOSED, "4 of 9"
    tool.run(3)
    assert fuseboard.breaker("timed").state is OPEN, "5 of 10"


async def test_slow_calls_of_coroutines_count(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    for _ in range(4):
        await tool.later(3)
    assert reasons(telemetry) == [("closed", "open", "slow_call_ratio")]


def test_slow_failures_count_as_both_and_failures_are_named_first(
    telemetry: Any, clock: Any
) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    for _ in range(4):
        with pytest.raises(ConnectionResetError):
            tool.run(3, ConnectionResetError())
    assert reasons(telemetry) == [("closed", "open", "failure_ratio")]


def test_slow_failures_count_as_slow(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    with pytest.raises(ConnectionResetError):
        tool.run(3, ConnectionResetError())
    for seconds in (0, 0, 3):
        tool.run(seconds)
    assert reasons(telemetry) == [("closed", "open", "slow_call_ratio")]


def test_slow_mistakes_of_the_caller_do_not_count(telemetry: Any, clock: Any) -> None:
    class NotFound(Exception):  # noqa: N818
        status_code = 404

    tool = Timed(clock, Policy(breaker=SLOW))
    for _ in range(10):
        with pytest.raises(NotFound):
            tool.run(9, NotFound())
    assert fuseboard.breaker("timed").state is CLOSED


def test_slow_probe_opens_again_and_a_quick_one_closes(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    for _ in range(4):
        tool.run(3)
    clock.move(10)
    tool.run(3)
    clock.move(10)
    tool.run(0.1)
    assert reasons(telemetry) == [
        ("closed", "open", "slow_call_ratio"),
        ("open", "half_open", "break_over"),
        ("half_open", "open", "slow_call_ratio"),
        ("open", "half_open", "break_over"),
        ("half_open", "closed", "probe_succeeded"),
    ]
    for seconds in (0, 0, 0, 3):
        tool.run(seconds)
    assert fuseboard.breaker("timed").state is CLOSED, "what was counted before is forgotten"


def test_share_of_slow_probes_decides(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, break_duration=10, slow_call_seconds=2,
                      slow_call_ratio=0.6, half_open_probes=3)  # fmt: skip
    for slow, state in ((1, CLOSED), (2, OPEN)):
        circuit = CircuitBreaker(BreakerKey("t"), breaker, clock, lambda _: None)
        for _ in range(2):
            circuit.fail(_permit(circuit), ErrorClass.L3_TRANSIENT)
        clock.move(10)
        for number in range(3):
            circuit.succeed(_permit(circuit), seconds=3.0 if number < slow else 0.1)
        assert circuit.state is state


def _permit(circuit: CircuitBreaker) -> Permit:
    answer = circuit.acquire()
    assert isinstance(answer, Permit)
    return answer


def test_slow_results_leave_the_window(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=SLOW))
    for _ in range(3):
        tool.run(3)
    clock.move(70)
    for seconds in (0, 0, 0, 3):
        tool.run(seconds)
    assert fuseboard.breaker("timed").state is CLOSED


def test_whole_calls_are_slow_by_the_time_of_their_attempts(
    telemetry: Any, clock: Any, full_wait: None
) -> None:
    breaker = Breaker(
        minimum_throughput=2,
        slow_call_seconds=2,
        slow_call_ratio=0.5,
        scope="call",
        sampling_duration=600,
    )
    policy = Policy(breaker=breaker, retry=Retry(wait_initial=60, wait_max=60, budget=None),
                    effects="none")  # fmt: skip
    seconds = iter((0.5, 0.5, 1.5, 1.5))

    @fuseboard.tool(policy=policy)
    def flaky() -> str:
        clock.move(next(seconds))
        current = fuseboard.current_call()
        if current and current.attempt == 1:
            raise ConnectionResetError
        return "ok"

    flaky()
    assert telemetry.last.backoff_seconds > 2, "waits are not the tool's"
    assert fuseboard.breaker("flaky").state is CLOSED
    flaky()
    assert reasons(telemetry) == [("closed", "open", "slow_call_ratio")], "1.5 s twice are 3 s"


def test_streams_are_slow_by_their_first_item(telemetry: Any, clock: Any) -> None:
    @fuseboard.tool(policy=Policy(breaker=SLOW))
    def numbers(first: float) -> Iterator[int]:
        clock.move(first)
        yield 1
        yield 2

    @fuseboard.tool(name="numbers", policy=Policy(breaker=SLOW))
    async def later(first: float) -> AsyncIterator[int]:
        clock.move(first)
        yield 1

    for _ in range(4):
        for _ in numbers(0.1):
            clock.move(3)  # the consumer's own time
    assert fuseboard.breaker("numbers").state is CLOSED

    async def consume() -> list[int]:
        return [item async for item in later(3)]

    for _ in range(4):
        asyncio.run(consume())
    assert reasons(telemetry) == [("closed", "open", "slow_call_ratio")]


def test_whole_streams_are_slow_by_their_attempts_up_to_the_first_item(
    telemetry: Any, clock: Any
) -> None:
    breaker = Breaker(minimum_throughput=2, slow_call_seconds=2, slow_call_ratio=0.5, scope="call")
    seconds = iter([0.1] * 4 + [1.5] * 4)

    @fuseboard.tool(policy=Policy(breaker=breaker, retry=Retry(wait_initial=0), effects="none"))
    def numbers() -> Iterator[int]:
        clock.move(next(seconds))
        current = fuseboard.current_call()
        if current and current.attempt == 1:
            raise ConnectionResetError
        yield 1
        clock.move(3)
        yield 2

    for _ in range(2):
        for _ in numbers():
            clock.move(3)  # the consumer's own time
    assert fuseboard.breaker("numbers").state is CLOSED
    for _ in range(2):
        assert list(numbers()) == [1, 2]
    assert reasons(telemetry) == [("closed", "open", "slow_call_ratio")], "1.5 s twice are 3 s"


def test_without_a_bound_nothing_is_slow(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=Breaker(minimum_throughput=2)))
    for _ in range(10):
        tool.run(1e6)
    assert fuseboard.breaker("timed").state is CLOSED


# --- By hand ------------------------------------------------------------------------------


def test_breaker_is_held_open_and_closed_by_hand(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=Breaker()))
    tool.run(0)
    switch = fuseboard.breaker("timed")
    assert (switch.name, switch.state) == ("timed", CLOSED)
    switch.isolate()
    switch.isolate()
    clock.move(3600)
    with pytest.raises(CircuitOpenError, match="held open by hand") as caught:
        tool.run(0)
    assert caught.value.retry_after is None
    assert repr(switch) == "<breaker 'timed': isolated>"
    switch.reset()
    assert tool.run(0) == "ok"
    assert reasons(telemetry) == [
        ("closed", "isolated", "isolated_by_hand"),
        ("isolated", "closed", "closed_by_hand"),
    ]


def test_reset_forgets_what_was_counted_also_while_closed(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=Breaker(minimum_throughput=4)))
    for _ in range(3):
        with pytest.raises(ConnectionResetError):
            tool.run(0, ConnectionResetError())
    fuseboard.breaker("timed").reset()
    with pytest.raises(ConnectionResetError):
        tool.run(0, ConnectionResetError())
    assert fuseboard.breaker("timed").state is CLOSED
    assert telemetry.transitions == []


def test_open_breaker_is_closed_by_hand(telemetry: Any, clock: Any) -> None:
    tool = Timed(clock, Policy(breaker=Breaker(minimum_throughput=2)))
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            tool.run(0, ConnectionResetError())
    fuseboard.breaker("timed").reset()
    assert tool.run(0) == "ok"
    assert reasons(telemetry)[-1] == ("open", "closed", "closed_by_hand")


def test_isolated_breaker_stays_so_when_its_settings_change(telemetry: Any, clock: Any) -> None:
    Timed(clock, Policy(breaker=Breaker())).run(0)
    switch = fuseboard.breaker("timed")
    switch.isolate()
    changed = Timed(clock, Policy(breaker=Breaker(minimum_throughput=50)))
    assert switch.state is ISOLATED
    with pytest.raises(CircuitOpenError):
        changed.run(0)
    switch.reset()
    assert changed.run(0) == "ok"


def test_breakers_are_listed_by_name(telemetry: Any, clock: Any) -> None:
    assert fuseboard.breakers() == []
    for name in ("b", "a"):
        Timed(clock, Policy(breaker=Breaker()), name).run(0)
    fuseboard.breaker("b").isolate()
    found = [(status.name, status.tool, status.state) for status in fuseboard.breakers()]
    assert found == [("a", "a", CLOSED), ("b", "b", ISOLATED)]
    assert all(isinstance(status, fuseboard.BreakerStatus) for status in fuseboard.breakers())


def test_unknown_breaker_is_refused_and_the_known_are_named(telemetry: Any, clock: Any) -> None:
    with pytest.raises(ConfigurationError, match="now there are none"):
        fuseboard.breaker("timed")
    Timed(clock, Policy(breaker=Breaker())).run(0)
    with pytest.raises(ConfigurationError, match=r"breaker\(name='timde'\).* there are 'timed'"):
        fuseboard.breaker("timde")


# --- Per instance -------------------------------------------------------------------------


POLICY_OF_SEND = Policy(
    breaker=Breaker(minimum_throughput=2, key=lambda args: args["self"].account),
    limit=Limit(concurrency=5),
)


class Client:
    """A class whose method is a tool; wrapped in each test, as registrations end with it."""

    send: Any

    def __init__(self, account: Any) -> None:
        self.account = account

    def _send(self, text: str, error: BaseException | None = None) -> str:
        if error is not None:
            raise error
        return text


@pytest.fixture(autouse=True)
def _send_is_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = fuseboard.wrap(Client._send, name="send", policy=POLICY_OF_SEND)
    monkeypatch.setattr(Client, "send", tool, raising=False)


def break_open(client: Client) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            client.send("x", error=ConnectionResetError())


def test_instances_that_share_a_key_share_a_breaker(telemetry: Any, clock: Any) -> None:
    ours, again, theirs = Client("ours"), Client("ours"), Client("theirs")
    break_open(ours)
    with pytest.raises(CircuitOpenError, match="'send/ours'"):
        again.send("x")
    assert theirs.send("x") == "x"
    assert [status.name for status in fuseboard.breakers()] == ["send/ours", "send/theirs"]
    assert {status.tool for status in fuseboard.breakers()} == {"send"}


def test_key_of_arguments_and_whole_numbers(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(key=lambda args: args["tenant"])

    @fuseboard.tool(policy=Policy(breaker=breaker), region="eu", upstream="api")
    async def later(query: str, tenant: int) -> str:
        return query

    asyncio.run(later("x", 7))
    assert [status.name for status in fuseboard.breakers()] == ["later/eu/api/7"]


@pytest.mark.parametrize(
    "account", [None, object(), ["a"], ""], ids=["none", "object", "list", "empty"]
)
def test_what_is_no_key_leaves_the_tools_own_breaker(
    telemetry: Any, clock: Any, account: Any
) -> None:
    telemetry.may_fault = True
    break_open(Client(account))
    with pytest.raises(CircuitOpenError, match="'send' is open"):
        Client(account).send("x")


def test_key_function_that_raises_harms_nobody(telemetry: Any, clock: Any) -> None:
    telemetry.may_fault = True

    @fuseboard.tool(policy=Policy(breaker=Breaker(key=lambda args: args["missing"])))
    def work() -> str:
        return "ok"

    assert work() == "ok"
    assert [status.name for status in fuseboard.breakers()] == ["work"]
    assert guard.fault_counts() == {("finding the breaker of a call by its key", "KeyError"): 1}


def test_keys_without_end_are_bounded(telemetry: Any, clock: Any) -> None:
    for number in range(MAX_BREAKERS + 50):
        Client(f"account-{number}").send("x")
    names = [status.name for status in fuseboard.breakers()]
    assert len(names) == MAX_BREAKERS + 1
    assert f"send/{OTHER_LABEL}" in names
    assert max(len(Client("x" * 10_000).send("x")), 1) == 1
    assert max(map(len, names)) < 200
