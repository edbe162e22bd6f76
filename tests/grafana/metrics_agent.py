"""An agent whose tools succeed, retry, fail, degrade and trip a breaker, with /metrics served.

Run with the port to serve on; ends when its standard input closes.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time

import fuseboard

CYCLE = 16


class UnavailableError(Exception):
    status_code = 503


_turns = itertools.count()


def _is_down() -> bool:
    """Half of each cycle the upstream of the guarded tool is down."""
    return next(_turns) % CYCLE < CYCLE // 2


_flips = itertools.count()


@fuseboard.tool(
    name="weather",
    region="eu-west",
    policy=fuseboard.Policy(
        retry=fuseboard.Retry(attempts=3, wait_initial=0.001, wait_max=0.002), effects="none"
    ),
)
def weather() -> dict[str, str]:
    if next(_flips) % 3 == 0:
        raise UnavailableError("try again")
    return {"sky": "clear"}


@fuseboard.tool(
    name="flights",
    region="us-east",
    policy=fuseboard.Policy(
        breaker=fuseboard.Breaker(
            failure_ratio=0.5, minimum_throughput=4, sampling_duration=1.0, break_duration=0.5
        ),
        fallback=fuseboard.Fallback(value={"flights": "from the cache"}),
    ),
)
def flights() -> dict[str, str]:
    if _is_down():
        raise UnavailableError("down")
    return {"flights": "many"}


@fuseboard.tool(name="search", region="us-east")
def search() -> dict[str, str]:
    raise KeyError("defect")


def main() -> None:
    fuseboard.init(
        "grafana-test",
        region="eu-west",
        endpoint="http://127.0.0.1:9",
        heartbeat_seconds=3600,
        shutdown_timeout=0,
    )
    fuseboard.serve_metrics(int(sys.argv[1]))
    print("serving", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        weather()
        flights()
        with contextlib.suppress(KeyError):
            search()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
