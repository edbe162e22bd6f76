"""HC-06 once more: a fork at the moment when another thread holds every lock of ours."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

SCRIPT = """
import gc, os, signal, threading, time
import fuseboard
from fuseboard import guard

fuseboard.init("forks", endpoint="http://127.0.0.1:9", shutdown_timeout=0.5)

@fuseboard.tool(policy=fuseboard.Policy(breaker=fuseboard.Breaker()))
def search(fails=False):
    if fails:
        raise ValueError

search()
time.sleep(0.2)

# The locks' owners are found rather than listed, so that a new one is not forgotten.
kinds = (type(threading.Lock()), type(threading.RLock()))
owners = [
    thing for thing in gc.get_objects()
    if (type(thing).__module__ or "").startswith("fuseboard")
    or type(thing).__name__ == "CollectorRegistry"
]
locks = [
    getattr(owner, name, None)
    for owner in owners
    for name in ("lock", "_lock", "_reporting")
]
locks = [lock for lock in locks if isinstance(lock, kinds)]
assert len(locks) >= 12, len(locks)

def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    threading.Event().wait()

held = threading.Event()
threading.Thread(target=hold, daemon=True).start()
assert held.wait(10)
child = os.fork()
if child == 0:
    signal.alarm(15)  # kills it where it waits for ever
    search()
    try:
        search(True)
    except ValueError:
        pass
    with fuseboard.call("by_hand"):
        pass
    guard.swallow("testing", ValueError())
    fuseboard.tool(name="another")(len)("x")
    assert b'outcome="ok"' in fuseboard.metrics_text()[0]
    fuseboard.shutdown(0.5)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_hc_06_a_child_forked_while_every_lock_is_held_works(
    run_script: Callable[..., CompletedProcess[str]],
) -> None:
    done = run_script(SCRIPT)
    assert done.stdout == "7\n", done.stderr
