"""What spans, metrics and logs say of answers from a cache and of what stands in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_collector import as_dict  # type: ignore[import-not-found]

import fuseboard
from fuseboard import Cache, Fallback, Policy, Retry, setup

SECRET = "CANARYx7Qz93LmA4kPq"


def counted(action: str) -> dict[str, float]:
    lines = setup.metrics_text()[0].decode().splitlines()
    found = [line for line in lines if line.startswith("fuseboard_layer_actions_total{")]
    return {
        line.split('tool="')[1].split('"')[0]: float(line.rsplit(" ", 1)[1])
        for line in found
        if f'action="{action}"' in line
    }


def test_spans_of_a_miss_a_hit_and_a_stale_answer(start: Any, collector: Any, clock: Any) -> None:
    start()
    answers: list[Any] = ["live", ConnectionRefusedError()]

    @fuseboard.tool(policy=Policy(cache=Cache(ttl=60, stale=60), effects="none"))
    def read(city: str) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    assert counted("hit_memory") == counted("miss") == counted("stale") == {"read": 0}
    read("Oslo")
    clock.move(30)
    read("Oslo")
    clock.move(60)
    assert read("Oslo") == "live"
    assert setup.flush(20)
    live, hit, stale = (
        as_dict(span.attributes)
        for span in sorted(collector.spans(), key=lambda span: span.start_time_unix_nano)
        if span.name == "execute_tool read"
    )
    assert live["fuseboard.result.source"] == "live"
    assert live["fuseboard.result.confidence"] == "high"
    assert "fuseboard.result.age_seconds" not in live
    assert (hit["fuseboard.outcome"], hit["fuseboard.layer"]) == ("ok", "cache")
    assert (hit["fuseboard.attempts"], hit["fuseboard.result.source"]) == (0, "cache")
    assert hit["fuseboard.result.confidence"] == "medium_high"
    assert hit["fuseboard.result.age_seconds"] == 30
    assert "error.type" not in hit
    assert (stale["fuseboard.outcome"], stale["fuseboard.layer"]) == ("degraded", "cache")
    assert stale["error.classified_as"] == "L3_transient"
    assert stale["error.retry_strategy"] == "switch"
    assert stale["fuseboard.result.age_seconds"] == 90
    assert all(span.status.code == 0 for span in collector.spans() if span.name.startswith("exec"))
    assert (counted("hit_memory"), counted("miss"), counted("stale")) == (
        {"read": 1},
        {"read": 2},
        {"read": 1},
    )
    text = setup.metrics_text()[0].decode()
    assert 'fuseboard_tool_calls_total{error_class="none",outcome="ok",' in text
    (attempted,) = [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("fuseboard_tool_attempted_calls_total{")
        and 'first_attempt="success"' in line
    ]
    assert attempted == 1, "a hit made no attempt"


def test_span_of_a_tool_that_stands_in_is_a_child(start: Any, collector: Any) -> None:
    start()

    @fuseboard.tool
    def second() -> str:
        return "second"

    @fuseboard.tool(policy=Policy(fallback=second))
    def first() -> str:
        raise ConnectionRefusedError

    assert first() == "second"
    assert setup.flush(20)
    spans = {span.name: span for span in collector.spans()}
    outer, inner = spans["execute_tool first"], spans["execute_tool second"]
    assert inner.parent_span_id == outer.span_id
    assert as_dict(outer.attributes)["fuseboard.fallback.tool"] == "second"


def test_hand_over_is_counted_beside_zeroes(start: Any) -> None:
    start()

    @fuseboard.tool(policy=Policy(fallback=Fallback(lambda: "mail", name="duty", hand_over=True)))
    def first() -> str:
        raise ConnectionRefusedError

    assert counted("handed_over") == {"first": 0}
    first()
    assert (counted("handed_over"), counted("served")) == ({"first": 1}, {"first": 0})


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_hc_12_secret_arguments_pass_the_cache_and_the_chain_unseen(
    start: Any, collector: Any, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    start()
    runs = 0

    def refuse(user: str, password: str) -> str:
        raise RuntimeError(f"password={password}")

    def third(user: str, password: str) -> str:
        return f"logged in {user}"

    policy = Policy(
        retry=Retry(attempts=3, wait_initial=0),
        cache=Cache(ttl=0.001, stale=0, key=lambda args: (args["user"], args["password"])),
        fallback=(refuse, fuseboard.wrap(refuse, name="other"), third),
        effects="none",
    )

    def login(user: str, password: str) -> str:
        nonlocal runs
        runs += 1
        raise ConnectionResetError(f"reset, password={password}")

    async def login_later(user: str, password: str) -> str:
        return login(user, password)

    made: Any = fuseboard.wrap(login_later if is_async else login, name="login", policy=policy)
    unkeyed: Any = fuseboard.wrap(
        login_later if is_async else login,
        name="unkeyed",
        policy=Policy(cache=Cache(), fallback=third, effects="none"),
    )
    for call in (made, unkeyed):
        answer = call("ann", password=SECRET)
        assert (asyncio.run(answer) if is_async else answer) == "logged in ann"
    assert runs == 4
    assert setup.flush(20)
    assert len(collector.spans()) == 2 + 3 + 1 + 2
    for _, body in collector.bodies:
        assert SECRET.encode() not in body
    assert SECRET.encode() not in setup.metrics_text()[0]
    assert SECRET not in caplog.text
