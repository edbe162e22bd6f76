"""Label values that cannot explode: a closed set, ``_other``, and a count of what was folded."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from fuseboard.conventions import OTHER_LABEL
from fuseboard.telemetry.redaction import name

MAX_TOOLS: Final = 500
MAX_REGIONS: Final = 50
MAX_BREAKERS: Final = 2000


class BoundedLabel:
    """The values that one label may take.

    Args:
        label: The label's name.
        limit: Most values that are let in, ``_other`` apart.
        admits_new: Whether values that nobody declared are let in while there is room.
    """

    def __init__(self, label: str, limit: int, *, admits_new: bool) -> None:
        self.label = label
        self.folded = 0
        self._limit = limit
        self._admits_new = admits_new
        self._values: dict[str, str] = {}
        self._lock = threading.RLock()

    def declare(self, values: Iterable[str]) -> None:
        """Let values in, as far as there is room."""
        for value in values:
            self._admit(value)

    def _admit(self, value: str) -> str:
        with self._lock:
            if value in self._values or len(self._values) < self._limit:
                return self._values.setdefault(value, name(value))
            return OTHER_LABEL

    def value(self, wanted: str) -> str:
        """Return the label value to use, and count it where that is ``_other``."""
        known = self._values.get(wanted)
        if known is not None:
            return known
        chosen = self._admit(wanted) if self._admits_new else OTHER_LABEL
        if chosen == OTHER_LABEL:
            with self._lock:
                self.folded += 1
        return chosen

    def peek(self, wanted: str) -> str:
        """Return the label value to use, without counting or letting anything in."""
        return self._values.get(wanted, OTHER_LABEL)

    def after_fork(self) -> None:
        """Replace the lock, which another thread of the parent may have held."""
        self._lock = threading.RLock()
        self.folded = 0
