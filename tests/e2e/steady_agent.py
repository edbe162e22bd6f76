"""An agent that makes numbered calls at a steady pace: ``steady_agent.py COUNT PER_SECOND URL``.

It prints ``begun`` when it starts, and leaves with code 0 only if everything was delivered.
"""

from __future__ import annotations

import sys
import time

import fuseboard


@fuseboard.tool
def count(number: int) -> int:
    return number


def main() -> None:
    total, per_second, endpoint = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    fuseboard.init(service="steady-agent", region="us-east", endpoint=endpoint)
    print("begun", flush=True)
    for number in range(total):
        count(number)
        time.sleep(1 / per_second)
    print("called", flush=True)
    sys.exit(0 if fuseboard.flush(timeout=120) else 3)


if __name__ == "__main__":
    main()
