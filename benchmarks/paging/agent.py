"""An agent that calls tools until it is ended: 20 calls a second, one in twenty fails."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time

import fuseboard

CALLS_PER_SECOND = 20


def main(endpoint: str) -> None:
    fuseboard.init(service="service-00", region="us-east-1", endpoint=endpoint)

    def work(number: int) -> int:
        if number % 20 == 7:
            raise TimeoutError("made to fail")
        return number

    tools = [fuseboard.tool(work, name=f"tool_{number:03d}") for number in range(40)]
    for number in itertools.count():
        with contextlib.suppress(TimeoutError):
            tools[number * number % len(tools)](number)
        time.sleep(1 / CALLS_PER_SECOND)


if __name__ == "__main__":
    main(sys.argv[1])
