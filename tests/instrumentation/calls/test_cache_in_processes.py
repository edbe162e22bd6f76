"""A forked process goes on with the cache of its parent, whatever the parent was doing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from redis_servers import RealRedis

PRELUDE = """
import os, threading, warnings
import fuseboard
from fuseboard import Cache, Policy
warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is what is tested

def in_child(work):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    answer = b""
    while piece := os.read(reading, 4096):
        answer += piece
    os.waitpid(child, 0)
    return answer.decode()
"""


def run(source: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_has_the_answers_and_none_of_the_waiting() -> None:
    shown = run("""
started, go_on = threading.Event(), threading.Event()
runs = []

@fuseboard.tool(policy=Policy(cache=Cache(), effects="none"))
def read(city):
    runs.append(city)
    if city == "slow" and os.getpid() == parent:
        started.set()
        go_on.wait(30)
    return f"{city} {len(runs)}"

parent = os.getpid()
read("Oslo")
leader = threading.Thread(target=read, args=("slow",))
leader.start()
started.wait(30)
# "slow" is under way in a thread that the child does not have.
print(in_child(lambda: f"{read('Oslo')}, {read('slow')}, {read('slow')}"))
go_on.set()
leader.join()
print(read("slow"))
""")
    assert shown == "Oslo 1, slow 3, slow 3\nslow 2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_locks_held_at_the_fork_do_not_hold_up_the_child() -> None:
    shown = run("""
from fuseboard.policy import cache as caches

@fuseboard.tool(policy=Policy(cache=Cache(), effects="none"))
def read(city):
    return city

read("Oslo")
(cache,) = caches._CACHES
held, go_on = threading.Event(), threading.Event()

def hold():
    with cache._memory._lock, cache.flights._lock:
        held.set()
        go_on.wait(30)

holder = threading.Thread(target=hold)
holder.start()
held.wait(30)
print(in_child(lambda: read("Oslo") + read("Rome")))
go_on.set()
holder.join()
""")
    assert shown == "OsloRome"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_asks_redis_over_connections_of_its_own(redis_binary: Path) -> None:
    pytest.importorskip("redis")
    server = RealRedis(redis_binary)
    try:
        shown = run(f"""
import asyncio
runs = []
policy = Policy(cache=Cache(redis={server.url!r}), effects="none")

def read(city):
    runs.append(city)
    return city

async def read_later(city):
    return read(city)

sync_tool = fuseboard.wrap(read, name="one", policy=policy)
async_tool = fuseboard.wrap(read_later, name="two", policy=policy)
sync_tool("Oslo")
asyncio.run(async_tool("Oslo"))  # makes the threads that ask

def work():
    again = fuseboard.wrap(read, name="one", policy=policy)
    later = fuseboard.wrap(read_later, name="two", policy=policy)
    again("Oslo")
    asyncio.run(later("Oslo"))
    asyncio.run(later("Rome"))
    return str(runs)

print(in_child(work))
print(in_child(work))
print(sync_tool("Oslo"), runs)
""")
    finally:
        server.close()
    assert shown.splitlines() == [
        "['Oslo', 'Oslo', 'Rome']",
        "['Oslo', 'Oslo']",
        "Oslo ['Oslo', 'Oslo']",
    ]
