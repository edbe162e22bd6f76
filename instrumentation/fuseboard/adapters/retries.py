"""Show the retries that a tool makes itself, by tenacity or stamina, as attempts of its call.

Stamina is built on tenacity, so both are listened to in the same place: where tenacity begins a
try, ends one and decides to wait for the next. Nothing of what they do is changed.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from fuseboard import guard
from fuseboard.adapters.installing import Installation, Target
from fuseboard.calls.current import CURRENT, LaterAttempt
from fuseboard.calls.judging import cut_by
from fuseboard.calls.recording import Entered, close_attempt, enter, leave, open_attempt
from fuseboard.classification import judge_exception, judge_result
from fuseboard.classification.verdicts import semantic_fault
from fuseboard.conventions import Outcome, RetryEnd
from fuseboard.forking import after_fork_in_child
from fuseboard.record import CallRecord, Fault
from fuseboard.runtime import RUNTIME

TENACITY: Final = "tenacity"
STAMINA: Final = "stamina"

RETRIED_RESULT: Final = semantic_fault("retried_result")
"""The verdict on an answer that only the retrying code does not like."""

_LOOP: Final = "_fuseboard_loop"


class _Listening:
    """Which libraries' retries are shown, and the lock for attempts that tools make."""

    def __init__(self) -> None:
        self.to: frozenset[str] = frozenset()
        self.renew_lock()

    def renew_lock(self) -> None:
        self.lock = threading.Lock()


_LISTENING: Final = _Listening()
_INSTALLATION: Final = Installation("instrument_tenacity")
after_fork_in_child(_LISTENING.renew_lock)


class _Loop:
    """One run of a retrying function inside a call.

    Attributes:
        call: The call.
        number: Its attempt in which the run began.
        entered: What has to be left when the running try ends.
        delay: Seconds that are waited for the next try; None while one runs.
    """

    __slots__ = ("call", "delay", "entered", "number")

    def __init__(self, call: CallRecord, number: int) -> None:
        self.call = call
        self.number = number
        self.entered: Entered | None = None
        self.delay: float | None = None

    def is_current(self) -> bool:
        """Tell whether the attempt still runs in which the run began.

        A function that has outlived its time limit goes on beside the policy's next attempt.
        """
        call = self.call
        later = call.attempts[self.number :]
        return call.outcome is None and all(attempt.is_inner for attempt in later)


def listen(library: str) -> None:
    """Show the retries of a library from now on."""
    _LISTENING.to |= {library}
    _INSTALLATION.install(
        [
            Target("tenacity", "BaseRetrying.iter", _iter),
            Target("tenacity.asyncio", "AsyncRetrying.iter", _iter_async),
            Target("tenacity", "RetryCallState.prepare_for_next_attempt", _prepare),
            Target("tenacity", "RetryCallState.set_exception", _end_try),
            Target("tenacity", "RetryCallState.set_result", _end_try),
        ]
    )


def ignore(library: str) -> None:
    """Show them no more; the last library restores everything."""
    _LISTENING.to -= {library}
    if not _LISTENING.to:
        _INSTALLATION.remove()


def _iter(original: Any, retrying: Any, retry_state: Any) -> Any:
    try:
        what = original(retrying, retry_state=retry_state)
    except BaseException:
        _give_up(retrying, retry_state)
        raise
    _go_on(what, retry_state)
    return what


async def _iter_async(original: Any, retrying: Any, retry_state: Any) -> Any:
    try:
        what = await original(retrying, retry_state=retry_state)
    except BaseException:
        _give_up(retrying, retry_state)
        raise
    _go_on(what, retry_state)
    return what


def _prepare(original: Any, state: Any) -> Any:
    try:
        _wait(state)
    except Exception as fault:
        guard.swallow("recording a retry", fault)
    return original(state)


def _end_try(original: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
    loop = getattr(state, _LOOP, None)
    if loop is not None and loop.entered is not None:
        leave(loop.entered)
        loop.entered = None
    return original(state, *args, **kwargs)


def _go_on(what: Any, state: Any) -> None:
    """Begin a try, if that is what comes next."""
    try:
        if type(what).__name__ != "DoAttempt":
            return
        loop = getattr(state, _LOOP, None)
        if loop is not None:
            _try_again(loop)
        elif state.attempt_number == 1:
            setattr(state, _LOOP, _loop_here(state))
    except Exception as fault:
        guard.swallow("recording a retry", fault)


def _loop_here(state: Any) -> _Loop | None:
    before = getattr(state.retry_object, "before_sleep", None)
    module = str(getattr(before, "__module__", ""))
    library = STAMINA if module.partition(".")[0] == STAMINA else TENACITY
    current = CURRENT.get()
    if current is None or library not in _LISTENING.to:
        return None
    if isinstance(current, LaterAttempt):
        return _Loop(current.call, current.number)
    return _Loop(current, 1)


def _wait(state: Any) -> None:
    """End the attempt that has failed, before the wait for the next."""
    loop = getattr(state, _LOOP, None)
    if loop is None:
        return
    call = loop.call
    with _LISTENING.lock:
        # Where several functions of a tool retry beside each other, one of them may wait already.
        if call.is_between_attempts or not loop.is_current():
            return
        attempt = call.attempts[-1]
        call.is_plain = False
        call.is_between_attempts = True
        loop.delay = float(state.upcoming_sleep or 0.0)
    now = RUNTIME.clock.monotonic()
    judged = _judge(state.outcome)
    if isinstance(judged, Fault):
        close_attempt(call, attempt, now, judged)
    else:
        close_attempt(call, attempt, now, None, cut_by(*judged))


def _try_again(loop: _Loop) -> None:
    call = loop.call
    with _LISTENING.lock:
        delay, loop.delay = loop.delay, None
        # The call may have been cut while this waited, or have gone on without it.
        if delay is None or not call.is_between_attempts or not loop.is_current():
            return
        call.is_between_attempts = False
        call.backoff_seconds += delay
        open_attempt(call, delay, is_inner=True)
    loop.entered = enter(call)


def _judge(outcome: Any) -> Fault | tuple[Outcome, BaseException]:
    """Judge the result or the exception for which a function is tried again."""
    now = RUNTIME.clock.time_ns() / 1e9
    error = outcome.exception()
    if error is None:
        finding = judge_result(outcome.result(), now)
        if finding is not None:
            return Fault(finding.verdict, finding.code, finding.message)
        return Fault(RETRIED_RESULT, RETRIED_RESULT.classifier_id, "")
    judged = judge_exception(error, now)
    return judged if isinstance(judged, Fault) else (judged, error)


def _give_up(retrying: Any, state: Any) -> None:
    """Remember that the last try has failed and no other may follow."""
    loop = getattr(state, _LOOP, None)
    if loop is not None and loop.is_current() and len(loop.call.attempts) > 1:
        is_spent = getattr(retrying.iter_state, "stop_run_result", False)
        loop.call.retry_end = RetryEnd.EXHAUSTED if is_spent else RetryEnd.STOPPED
