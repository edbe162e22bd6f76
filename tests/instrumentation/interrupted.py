"""Calls that come while what earlier ones left is being counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Interrupted(deque[float]):
    """Has a tool called, by a signal's handler or the garbage collector, while it is emptied."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then: Callable[[], None] | None = then

    def popleft(self) -> float:
        found = super().popleft()
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return found
