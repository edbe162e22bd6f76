"""What happens to fuseboard's own faults: they are logged once per kind and go no further."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Final

from fuseboard.forking import after_fork_in_child

logger = logging.getLogger("fuseboard")

_MAX_KINDS = 256


class _Swallowed:
    """What was swallowed so far, keyed by (where, exception class)."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.renew_lock()

    def renew_lock(self) -> None:
        # Reentrant, because the garbage collector may end a stream at any place.
        self.lock = threading.RLock()


_SWALLOWED: Final = _Swallowed()
after_fork_in_child(_SWALLOWED.renew_lock)


def swallow(where: str, fault: BaseException) -> None:
    """Log a fault of our own, or of code that was plugged into us, once per kind.

    Args:
        where: What was being done, for example ``classifying a result``.
        fault: What went wrong.
    """
    kind = (where, type(fault).__name__)
    counts = _SWALLOWED.counts
    with _SWALLOWED.lock:
        if kind not in counts and len(counts) >= _MAX_KINDS:
            return
        counts[kind] += 1
        is_first = counts[kind] == 1
    if is_first:
        # Not the fault's own words: they may hold a secret, and asking for them may fail.
        logger.warning(
            "fuseboard failed while %s (%s at %s); the tool call is not affected, and this kind "
            "of fault is not logged again",
            where,
            kind[1],
            _place_of(fault),
        )


def fault_counts() -> dict[tuple[str, str], int]:
    """Return how often each kind of fault was swallowed, keyed by (where, exception class)."""
    with _SWALLOWED.lock:
        return dict(_SWALLOWED.counts)


def forget_faults() -> None:
    """Start counting and logging anew, as tests need it."""
    with _SWALLOWED.lock:
        _SWALLOWED.counts.clear()


def _place_of(fault: BaseException) -> str:
    """Return ``file:line`` where the fault was raised."""
    place = fault.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return "an unknown place"
    return f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
