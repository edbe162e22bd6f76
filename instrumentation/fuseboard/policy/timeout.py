"""Bound what the running task does in time: a scope in that task, never another one."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable
from typing import Any, Final

Loop = asyncio.AbstractEventLoop

_TICK: Final = 1e-6
"""Seconds. Loops may ring earlier by the resolution of their clock, which is due all the same."""


class OverrunError(Exception):
    """The attempt took too long; whoever catches it puts it into the right words."""


class Deadline:
    """Cancels the running task when a time is over, and takes that cancellation back.

    The protocol of ``asyncio.timeout`` (``cancelling`` and ``uncancel``) without a context
    manager, of which every call would pay the entry and the exit.
    """

    __slots__ = ("_cancelling", "_is_due", "_task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        """Begin, for the task that is running."""
        self._task = task
        self._cancelling = task.cancelling()
        self._is_due = False

    def ends(self, error: BaseException | None = None) -> bool:
        """Stop the clock, once.

        Args:
            error: What ended the work, or None where it returned.

        Returns:
            Whether ``error`` is the cancellation by this deadline and by nobody else.
        """
        if not self._is_due:
            self._stop()
            return False
        is_ours = self._task.uncancel() <= self._cancelling
        return is_ours and error is not None and issubclass(type(error), asyncio.CancelledError)

    def expire(self) -> None:
        """Cancel the task."""
        self._is_due = True
        self._task.cancel()

    def _stop(self) -> None:
        raise NotImplementedError


class _OwnTimer(Deadline):
    """A deadline with a timer of its own, for a time that only one call has."""

    __slots__ = ("_handle",)

    def __init__(self, task: asyncio.Task[Any], seconds: float) -> None:
        super().__init__(task)
        self._handle = task.get_loop().call_later(seconds, self.expire)

    def _stop(self) -> None:
        self._handle.cancel()


class _Queue:
    """The running deadlines of one length in one event loop; the oldest is due first.

    Nearly all calls end in time. So one timer waits for the oldest of them, and looks who is
    there when it rings: a timer for each call would cost four times as much.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = weakref.ref(loop)
        self.due: dict[Deadline, float] = {}
        self.is_armed = False

    def arm(self, loop: Loop, when: float) -> None:
        self.is_armed = True
        loop.call_at(when, self._ring, loop)

    def _ring(self, loop: Loop) -> None:
        self.is_armed = False
        now = loop.time()
        while self.due:
            deadline, when = next(iter(self.due.items()))
            if when - now > _TICK:
                self.arm(loop, when)
                return
            del self.due[deadline]
            deadline.expire()


class _Queued(Deadline):
    __slots__ = ("_due",)

    def __init__(self, task: asyncio.Task[Any], due: dict[Deadline, float]) -> None:
        # What the base does: this is the path of every call with a time limit.
        self._task = task
        self._cancelling = task.cancelling()
        self._is_due = False
        self._due = due

    def _stop(self) -> None:
        self._due.pop(self, None)


class TimeLimit:
    """So many seconds for each of many tasks, in any event loop."""

    __slots__ = ("_last", "_queues", "_seconds")

    def __init__(self, seconds: float) -> None:
        """Fix the length."""
        self._seconds = seconds
        # Each queue is only touched by its loop's own thread, and kept by its loop's timer: what
        # is left in that of a loop that was closed is of no more use to anybody.
        self._queues: weakref.WeakValueDictionary[int, _Queue] = weakref.WeakValueDictionary()
        self._last: _Queue | None = None

    def begin(self) -> Deadline:
        """Start the clock for the running task."""
        task = _running_task()
        loop = task.get_loop()
        queue = self._last
        if queue is None or queue.loop() is not loop:
            queue = self._last = self._queue_of(loop)
        deadline = _Queued(task, queue.due)
        queue.due[deadline] = when = loop.time() + self._seconds
        if not queue.is_armed:
            queue.arm(loop, when)
        return deadline

    def _queue_of(self, loop: Loop) -> _Queue:
        queue = self._queues.get(id(loop))
        if queue is None or queue.loop() is not loop:
            queue = self._queues[id(loop)] = _Queue(loop)
        return queue


async def await_within(seconds: float, awaitable: Awaitable[Any]) -> Any:
    """Await in the caller's own task and cancel what runs there after ``seconds``.

    Raises:
        OverrunError: If it took longer. A ``TimeoutError`` of the tool's own passes through.
    """
    deadline = _OwnTimer(_running_task(), seconds)
    try:
        value = await awaitable
    except BaseException as error:
        if deadline.ends(error):
            raise OverrunError from error
        raise
    deadline.ends()
    return value


def _running_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a time limit needs an asyncio task that runs the tool")
    return task
