"""The second level of the cache: shared by processes, and never the reason for a failed call."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redis_servers import RealRedis, bad_redis, dead_redis
from scripted_tools import status_error

import fuseboard
from fuseboard import (
    Cache,
    ConfigurationError,
    Outcome,
    Policy,
    RedisStore,
    ResultSource,
)
from fuseboard.policy import cache_threads
from fuseboard.policy.cache_redis import FAULTS_IN_A_ROW
from fuseboard.policy.cache_threads import MAX_THREADS, AskingThreads

# As with programs from outside: what is missing in CI is no reason to skip.
in_ci = os.environ.get("CI") == "true"
redis: Any = importlib.import_module("redis") if in_ci else pytest.importorskip("redis")
BOTH = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@pytest.fixture(scope="module")
def running(redis_binary: Path) -> Iterator[RealRedis]:
    server = RealRedis(redis_binary)
    yield server
    server.close()


@pytest.fixture
def client(running: RealRedis) -> Iterator[Any]:
    client = redis.Redis.from_url(running.url)
    client.flushall()
    yield client
    client.close()


class Process:
    """What one process of several has: the tool with a memory of its own."""

    def __init__(self, cache: Cache, is_async: bool, answer: Any = None) -> None:
        self.answer = answer
        self.fault: BaseException | None = None
        self.runs = 0
        policy = Policy(cache=cache, effects="none")

        def read(city: str) -> Any:
            self.runs += 1
            if self.fault is not None:
                raise self.fault
            return self.answer if self.answer is not None else {"city": city, "n": self.runs}

        async def read_later(city: str) -> Any:
            await asyncio.sleep(0)
            return read(city)

        tool: Any = fuseboard.wrap(read_later if is_async else read, name="read", policy=policy)
        self.read: Callable[[str], Any] = (
            (lambda city: asyncio.run(tool(city))) if is_async else tool
        )


def hit(telemetry: Any) -> str | None:
    """Return what the cache did in the last call."""
    actions = [action for layer, action in telemetry.last.layer_actions if layer == "cache"]
    return ",".join(actions) or None


@BOTH
def test_processes_share_answers_and_memory_keeps_them_for_a_while(
    telemetry: Any, clock: Any, running: RealRedis, client: Any, is_async: bool
) -> None:
    one, two = (Process(Cache(redis=running.url), is_async) for _ in range(2))
    assert one.read("Oslo") == two.read("Oslo") == {"city": "Oslo", "n": 1}
    assert hit(telemetry) == "hit_redis"
    assert (telemetry.last.outcome, telemetry.last.result_source) == (
        Outcome.OK,
        ResultSource.CACHE,
    )
    two.read("Oslo")
    assert hit(telemetry) == "hit_memory"
    clock.move(61)
    two.read("Oslo")
    assert hit(telemetry) == "hit_redis", "60 s in memory"
    assert telemetry.last.result_age_seconds == pytest.approx(61, abs=0.01)
    clock.move(60)
    one.read("Oslo")
    assert hit(telemetry) == "hit_redis", "120 s in the memory of the one who fetched it"
    clock.move(178)
    two.read("Oslo")
    assert hit(telemetry) == "hit_redis"
    assert telemetry.last.result_age_seconds == pytest.approx(299, abs=0.01)
    clock.move(2)
    two.read("Oslo")
    assert hit(telemetry) == "miss", "fresh for 300 s, in memory too"
    assert (one.runs, two.runs) == (1, 1)


@BOTH
def test_stale_answer_of_another_process_stands_in(
    telemetry: Any, clock: Any, running: RealRedis, client: Any, is_async: bool
) -> None:
    cache = Cache(redis=running.url, stale=600)
    one, two = (Process(cache, is_async) for _ in range(2))
    one.read("Oslo")
    (key,) = client.keys()
    assert 0 < client.pttl(key) <= 900_000
    clock.move(400)
    two.fault = status_error(503)
    assert two.read("Oslo") == {"city": "Oslo", "n": 1}
    assert telemetry.last.outcome is Outcome.DEGRADED
    assert telemetry.last.result_age_seconds == pytest.approx(400, abs=0.01)
    assert hit(telemetry) == "miss,stale"


@pytest.mark.parametrize(
    "answer",
    [(1, 2), {"a": (1,)}, {1: "a"}, float("nan"), b"bytes", {"a": object}, [1, {2}]],
    ids=repr,
)
def test_what_json_would_change_stays_in_memory(
    telemetry: Any, running: RealRedis, client: Any, answer: Any
) -> None:
    telemetry.may_fault = True
    one, two = (Process(Cache(redis=running.url), False, answer) for _ in range(2))
    assert [one.read("x"), one.read("x"), two.read("x")][2] is answer
    assert (one.runs, two.runs) == (1, 1)
    assert client.keys() == []
    assert any("Redis" in where for where, _ in fuseboard.guard.fault_counts())


@BOTH
@pytest.mark.parametrize(
    "answer", [0, "", None, [], "ü€😀\ud800", 10**30, -0.5, {"a": [None, {"b": True}]}], ids=repr
)
def test_what_json_keeps_comes_back_as_it_was(
    telemetry: Any, running: RealRedis, client: Any, is_async: bool, answer: Any
) -> None:
    one, two = (Process(Cache(redis=running.url), is_async, answer) for _ in range(2))
    if answer is None:
        one.answer = two.answer = {"none": None}
        answer = one.answer
    one.read("x")
    found = two.read("x")
    assert (type(found), found, two.runs) == (type(answer), answer, 0)


def test_serializer_of_your_own(telemetry: Any, running: RealRedis, client: Any) -> None:
    store = RedisStore(running.url, serializer=pickle)
    one, two = (Process(Cache(redis=store), False, (1, {2})) for _ in range(2))
    one.read("x")
    assert two.read("x") == (1, {2})
    assert two.runs == 0


def test_too_long_answers_and_other_prefixes(
    telemetry: Any, running: RealRedis, client: Any
) -> None:
    small = RedisStore(running.url, max_bytes=10, prefix="mine")
    Process(Cache(redis=small), False, "x" * 9).read("a")
    assert client.keys() == []
    Process(Cache(redis=small), False, "x" * 8).read("a")
    (key,) = client.keys()
    assert key.startswith(b"mine:")
    other = Process(Cache(redis=running.url), False, "y")
    assert other.read("a") == "y"


@BOTH
@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"?", b"fuseboard1 \n1", b"fuseboard1 nan\n1", b"fuseboard1 5\n{", b"5\n1",
        b"\xff\xfe\x00", b"fuseboard1 1800000999.0\n" + b"[" * 200_000,
    ],
    ids=lambda garbage: repr(garbage[:20]),
)  # fmt: skip
def test_garbage_in_redis_is_a_miss(
    telemetry: Any, clock: Any, running: RealRedis, client: Any, is_async: bool, garbage: bytes
) -> None:
    telemetry.may_fault = True
    Process(Cache(redis=running.url), is_async).read("x")
    (key,) = client.keys()
    client.set(key, garbage)
    two = Process(Cache(redis=running.url), is_async)
    assert two.read("x") == {"city": "x", "n": 1}
    assert hit(telemetry) == "miss"
    assert telemetry.last.outcome is Outcome.OK
    assert client.get(key).startswith(b"fuseboard1 18"), "and is put right"


@BOTH
def test_value_of_another_type_is_a_miss(
    telemetry: Any, running: RealRedis, client: Any, is_async: bool
) -> None:
    telemetry.may_fault = True
    Process(Cache(redis=running.url), is_async).read("x")
    (key,) = client.keys()
    client.delete(key)
    client.rpush(key, "a list")
    assert Process(Cache(redis=running.url), is_async).read("x")["n"] == 1
    assert hit(telemetry) == "miss"


class Counting:
    """Counts the questions that a store really asks."""

    def __init__(self, store: RedisStore) -> None:
        self.asked = 0
        self._client = store._client
        store._client = self

    def get(self, key: str) -> Any:
        self.asked += 1
        return self._client.get(key)

    def set(self, key: str, value: bytes, **options: Any) -> Any:
        self.asked += 1
        return self._client.set(key, value, **options)


@BOTH
def test_dead_redis_costs_a_few_questions_and_no_call(
    telemetry: Any, clock: Any, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry.may_fault = True
    store = RedisStore(dead_redis(), pause=10)
    counting = Counting(store)
    process = Process(Cache(redis=store), is_async)
    for number in range(20):
        assert process.read(f"city {number}")["n"] == number + 1
    assert counting.asked == FAULTS_IN_A_ROW
    assert {call.outcome for call in telemetry.calls} == {Outcome.OK}
    process.read("city 0")
    assert hit(telemetry) == "hit_memory"
    clock.move(10)
    for number in range(20, 30):
        process.read(f"city {number}")
    assert counting.asked == FAULTS_IN_A_ROW + 1, "one tries again for all"
    said = [r for r in caplog.records if r.levelno >= logging.WARNING and "Redis" in r.message]
    assert len(said) == 1, "once for each kind of fault"


def test_redis_that_comes_back_is_used_again(
    telemetry: Any, clock: Any, running: RealRedis, client: Any
) -> None:
    telemetry.may_fault = True
    store = RedisStore(running.url, pause=10)
    counting = Counting(store)
    real = counting._client
    counting._client = redis.Redis.from_url(dead_redis())
    process = Process(Cache(redis=store), False)
    for number in range(5):
        process.read(f"city {number}")
    counting._client = real
    clock.move(10)
    process.read("first")
    process.read("second")
    assert len(client.keys()) >= 1
    other = Process(Cache(redis=running.url), False)
    other.read("second")
    assert hit(telemetry) == "hit_redis"


@BOTH
@pytest.mark.parametrize(
    "answer", [b"", b"!?garbage\r\n", b"-ERR no\r\n", b"$99999\r\nx"], ids=repr
)
def test_slow_or_confused_redis_costs_no_call(
    telemetry: Any, is_async: bool, answer: bytes
) -> None:
    telemetry.may_fault = True
    with bad_redis(answer) as url:
        process = Process(Cache(redis=RedisStore(url, timeout=0.1)), is_async)
        began = time.monotonic()
        for number in range(20):
            assert process.read(f"city {number}")["n"] == number + 1
        assert time.monotonic() - began < 10
    assert {call.outcome for call in telemetry.calls} == {Outcome.OK}


async def test_hc_28_slow_redis_does_not_hold_up_the_event_loop(telemetry: Any) -> None:
    telemetry.may_fault = True
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            longest = max(longest, time.monotonic() - began)

    with bad_redis() as url:
        store = RedisStore(url, timeout=1)

        @fuseboard.tool(policy=Policy(cache=Cache(redis=store), effects="none"))
        async def read(city: str) -> str:
            return city

        ticking = asyncio.create_task(tick())
        assert await read("Oslo") == "Oslo"
        ticking.cancel()
    assert 0 < longest < 0.9


async def test_call_cancelled_while_it_asks_redis_is_cancelled(telemetry: Any) -> None:
    telemetry.may_fault = True
    with bad_redis() as url:

        @fuseboard.tool(
            policy=Policy(cache=Cache(redis=RedisStore(url, timeout=2)), effects="none")
        )
        async def read(city: str) -> str:
            return city

        task = asyncio.create_task(read("Oslo"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    call = telemetry.last
    assert (call.outcome, call.layer, call.attempts) == (Outcome.CANCELLED, "cache", [])


async def test_async_client_of_your_own(telemetry: Any, running: RealRedis, client: Any) -> None:
    theirs = redis.asyncio.Redis.from_url(running.url)
    store = RedisStore(theirs)

    def tool() -> Any:
        async def read(city: str) -> str:
            return city

        return fuseboard.wrap(read, policy=Policy(cache=Cache(redis=store), effects="none"))

    assert [await tool()("Oslo"), await tool()("Oslo")] == ["Oslo", "Oslo"]
    assert hit(telemetry) == "hit_redis"
    await theirs.aclose()
    with pytest.raises(ConfigurationError, match="needs an async tool"):
        Process(Cache(redis=store), is_async=False)


def test_client_that_decodes_its_answers(telemetry: Any, running: RealRedis, client: Any) -> None:
    with redis.Redis.from_url(running.url, decode_responses=True) as theirs:
        one, two = (Process(Cache(redis=RedisStore(theirs)), False, "ü") for _ in range(2))
        one.read("x")
        assert two.read("x") == "ü"
    assert two.runs == 0


def test_keys_hold_no_argument(telemetry: Any, running: RealRedis, client: Any) -> None:
    Process(Cache(redis=running.url), False, "an answer").read("CANARY")
    Process(Cache(redis=running.url, key=lambda args: args["city"]), False, "1").read("CANARY")
    found = client.keys()
    assert len(found) == 2
    assert not any(b"CANARY" in key for key in found)


def test_wrong_settings_say_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ({"timeout": 0}, {"pause": -1}, {"max_bytes": 0}, {"prefix": ""}):
        with pytest.raises(ConfigurationError, match=next(iter(given))):
            RedisStore("redis://127.0.0.1", **given)
    with pytest.raises(ConfigurationError, match="dumps and loads"):
        RedisStore("redis://127.0.0.1", serializer=object())
    for target in (None, 5, object()):
        with pytest.raises(ConfigurationError, match="redis:// URL or a client"):
            RedisStore(target)
    with pytest.raises(ConfigurationError, match="at least ttl"):
        Cache(redis="redis://127.0.0.1", ttl=600)
    for url in ("http://user:CANARY@host:1/0", "redis://:CANARY/more@host:1/0"):
        with pytest.raises(ConfigurationError) as refused:
            RedisStore(url)
        assert "CANARY" not in "".join(traceback.format_exception(refused.value)).replace(url, "")
    for url in ("redis://:CANARY@h:1", "redis://h:1/0?password=CANARY"):
        assert "CANARY" not in repr(Policy(cache=Cache(redis=url), effects="none"))
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'fuseboard\[redis\]'") as missing:
        RedisStore("redis://:CANARY@host:1/0")
    assert "CANARY" not in str(missing.value)


def test_objects_need_a_key_where_processes_share(running: RealRedis) -> None:
    class Client:
        def read(self, city: str) -> str:
            return city

    policy = Policy(cache=Cache(redis=running.url), effects="none")
    with pytest.raises(ConfigurationError, match="no part of the key"):
        fuseboard.wrap(Client().read, policy=policy)
    fuseboard.wrap(Client().read, policy=Policy(cache=Cache(), effects="none"))


class Hanging:
    """A client that never answers, as where nobody set a time-out, or a name is looked up."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def get(self, key: str) -> None:
        self.let_go.wait(60)

    def set(self, key: str, value: bytes, **options: Any) -> None:
        self.let_go.wait(60)


@BOTH
def test_client_that_hangs_costs_a_bounded_time_and_no_call(telemetry: Any, is_async: bool) -> None:
    telemetry.may_fault = True
    client = Hanging()
    process = Process(Cache(redis=RedisStore(client, timeout=0.05)), is_async)
    began = time.monotonic()
    for number in range(20):
        assert process.read(f"city {number}")["n"] == number + 1
    assert time.monotonic() - began < 10
    client.let_go.set()


def test_process_ends_although_a_client_hangs() -> None:
    source = """
import threading, fuseboard
class Client:
    def get(self, key):
        threading.Event().wait()
    def set(self, *a, **k):
        threading.Event().wait()
store = fuseboard.RedisStore(Client(), timeout=0.05)
policy = fuseboard.Policy(cache=fuseboard.Cache(redis=store), effects="none")
read = fuseboard.wrap(lambda city: city, name="read", policy=policy)
print(read("Oslo"))
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "Oslo\n")


def test_questions_of_many_threads_are_asked_by_a_few(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_threads, "IDLE_SECONDS", 0.02)
    threads = AskingThreads("test-asks")
    with ThreadPoolExecutor(30) as pool:
        answers = list(
            pool.map(lambda number: threads.submit(lambda: number).result(20), range(300))
        )
    assert answers == list(range(300))
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("test-asks") <= MAX_THREADS
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(20)
    deadline = time.monotonic() + 20
    while any(thread.name == "test-asks" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "an idle thread does not end"
        time.sleep(0.01)
    assert threads.submit(lambda: "again").result(20) == "again"
