"""What threads leave in a queue without a lock, and how one of them takes it out."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

Item = TypeVar("Item")


def take_waiting(queue: deque[Item], most: int | None = None) -> list[Item]:
    """Take what waits in a queue, as of now; never raises.

    Others may take from it meanwhile: another thread, or in this one a signal's handler or the
    garbage collector, which may end a call wherever they come between. What was taken out
    before is kept then.

    Args:
        queue: The queue.
        most: How many items to take at most; all that wait if None.
    """
    found: list[Item] = []
    waiting = len(queue)
    try:
        for _ in range(waiting if most is None else min(most, waiting)):
            found.append(queue.popleft())  # noqa: PERF401 - must not be lost with an exception
    except IndexError:
        pass
    return found
