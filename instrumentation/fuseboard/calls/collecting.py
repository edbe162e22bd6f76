"""Whether the garbage collector runs in this thread and is closing what somebody left behind.

Setting a context variable may start the collector, and that may close a stream. If this sets a
context variable in turn, Python 3.11 goes on with memory that was freed meanwhile, and the process
crashes. Later versions collect between two instructions only.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Mapping
from typing import Final

_IS_NEEDED: Final = sys.version_info < (3, 12)


class Collector:
    """Follows the garbage collector, which runs in one thread at a time."""

    def __init__(self) -> None:
        self._thread: int | None = None
        self._is_watched = False

    def watch(self) -> None:
        """Begin to follow it, where Python needs that."""
        if _IS_NEEDED and not self._is_watched:
            self._is_watched = True
            gc.callbacks.append(self._note)

    def _note(self, phase: str, info: Mapping[str, int]) -> None:  # noqa: ARG002 - Python's signature
        self._thread = threading.get_ident() if phase == "start" else None

    def runs_here(self) -> bool:
        """Tell whether this code runs because the collector frees something."""
        return self._thread is not None and self._thread == threading.get_ident()


COLLECTOR: Final = Collector()
"""The garbage collector of this process."""
