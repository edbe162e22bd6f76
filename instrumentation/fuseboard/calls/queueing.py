"""Begin an attempt, after waiting for the tool's limit where it asks for that."""

from __future__ import annotations

from fuseboard.calls.guarded import GuardedRun
from fuseboard.conventions import Layer
from fuseboard.runtime import RUNTIME


def admit(run: GuardedRun) -> bool:
    """Open the next attempt, blocking the thread until its turn comes; False if none is made."""
    if run.admits():
        return True
    place = run.queued
    if place is None:
        return False
    try:
        place.wait()
    except BaseException as error:
        run.interrupted(error, Layer.LIMIT)
        raise
    return run.has_queued(RUNTIME.clock.monotonic() - place.since)


async def async_admit(run: GuardedRun) -> bool:
    """Open the next attempt, suspending the task until its turn comes; False if none is made."""
    if run.admits():
        return True
    place = run.queued
    if place is None:
        return False
    try:
        await place.async_wait()
    except BaseException as error:
        run.interrupted(error, Layer.LIMIT)
        raise
    return run.has_queued(RUNTIME.clock.monotonic() - place.since)
