"""What a tool may ask and say about the call it runs in."""

from __future__ import annotations

import inspect
import math
import uuid
from contextvars import ContextVar
from typing import Final, NamedTuple

from fuseboard.forking import after_fork_in_child
from fuseboard.record import CallRecord


class LaterAttempt(NamedTuple):
    """Stands for a call whose running attempt is not the first, or whose fallback runs.

    A fallback has the number after the last attempt's. A function that has outlived its timeout
    goes on beside the next attempt, hence the number belongs to the context it runs in, not to
    the call.
    """

    call: CallRecord
    number: int


CURRENT: ContextVar[CallRecord | LaterAttempt | None] = ContextVar(
    "fuseboard_current_call", default=None
)
"""The running call; the record itself stands for its first attempt."""


class _ProcessRun:
    """Tells the runs of processes apart, so that no two processes make the same key."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.id = uuid.uuid4().hex[:12]


_PROCESS_RUN: Final = _ProcessRun()
after_fork_in_child(_PROCESS_RUN.renew)


class CurrentCall:
    """The running call, as the tool sees it.

    Since 0.1.
    """

    __slots__ = ("_number", "_record")

    def __init__(self, record: CallRecord, number: int = 1) -> None:
        self._record = record
        self._number = number

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self._record.tool.name

    @property
    def attempt(self) -> int:
        """The number of the attempt that asked for this, from 1; in a fallback, one more."""
        return self._number

    @property
    def idempotency_key(self) -> str:
        """``session:step:call``: equal over the attempts of a call and unlike any other call's.

        Hand it to a server that acts once per key. Parts that are not known are replaced by
        what is unique: the run of the process and the call's place in it.
        """
        return key_of(self._record)

    @property
    def request_id(self) -> str:
        """The idempotency key and the attempt: another one for each request."""
        return f"{key_of(self._record)}:{self.attempt}"

    def set_cost(self, cost: float) -> None:
        """Say what the running attempt or fallback costs, in a unit of your own; they add up.

        Raises:
            ValueError: If it is negative or not finite.
        """
        if not math.isfinite(cost) or cost < 0:
            raise ValueError(f"set_cost({cost!r}): must be a finite number of at least 0")
        record = self._record
        if record.outcome is not None:
            return  # a late word of an attempt that was left behind
        if self._number <= len(record.attempts):
            record.attempts[self._number - 1].cost = float(cost)
        else:
            record.fallback_cost = float(cost)
        record.add_up_costs()

    def set_result_age(self, seconds: float) -> None:
        """Say how old the data is that will be returned, seconds: of a cached fallback, say.

        Raises:
            ValueError: If it is negative or not finite.
        """
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"set_result_age({seconds!r}): must be finite and at least 0")
        if self._record.outcome is None:
            self._record.is_plain = False
            self._record.result_age_seconds = float(seconds)


def current_call() -> CurrentCall | None:
    """Return the tool call that is running here, or None outside of one.

    Since 0.1.
    """
    current = CURRENT.get()
    if current is None:
        return None
    return CurrentCall(*current) if isinstance(current, LaterAttempt) else CurrentCall(current)


def key_in(answer: object) -> str | None:
    """Return the idempotency key in what a policy's function has answered, or None for none.

    Raises:
        TypeError: If it says nothing but where it lies in memory, as a coroutine does: two calls
            may lie at the same place, and a server would take them for one.
    """
    # No key, not the key "None", for the same reason.
    if answer is None or answer == "":
        return None
    kind = type(answer)
    is_bare = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    if is_bare or inspect.isawaitable(answer):
        raise TypeError(f"idempotency_key returned {kind.__name__}, not a text")
    return str(answer)


def key_of(record: CallRecord) -> str:
    """Return the idempotency key of a call."""
    if record.idempotency_key is not None:
        return record.idempotency_key
    # The start alone may be shared by two calls at once, the address by two in a row.
    call = record.call_id or f"{record.started_unix_ns:x}-{id(record):x}"
    return f"{record.session or _PROCESS_RUN.id}:{record.step or record.agent or '-'}:{call}"
