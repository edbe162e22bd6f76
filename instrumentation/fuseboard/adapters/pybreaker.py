"""pybreaker: its breakers' states and transitions beside those of fuseboard's own.

Every breaker is listened to, those that exist and those still to be made. It is named after the
tool in which it is first used. What it decides stays its own business.
"""

from __future__ import annotations

import gc
import itertools
import threading
from typing import Any, Final
from weakref import WeakKeyDictionary

from fuseboard import guard
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.calls.current import CURRENT, LaterAttempt
from fuseboard.classification import judge_exception
from fuseboard.conventions import OTHER_LABEL, BreakerState, ErrorClass
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import BreakerStatus, BreakerTransition, CallRecord, Fault
from fuseboard.runtime import RUNTIME

PACKAGE: Final = Package("pybreaker", extra="", oldest="1.2", below="2")

_OWNER: Final = "instrument_pybreaker"
_STATES: Final = {
    "closed": BreakerState.CLOSED,
    "open": BreakerState.OPEN,
    "half-open": BreakerState.HALF_OPEN,
}
_INSTALLATION: Final = Installation(_OWNER)
_UNNAMED: Final = itertools.count(1)


class _Watched:
    """The listeners by breaker; they go when their breaker goes."""

    def __init__(self) -> None:
        self.listeners: WeakKeyDictionary[Any, _Listener] = WeakKeyDictionary()
        self.renew_lock()

    def renew_lock(self) -> None:
        self.lock = threading.RLock()


_WATCHED: Final = _Watched()
after_fork_in_child(_WATCHED.renew_lock)


def instrument_pybreaker() -> None:
    """Show the breakers of pybreaker with their transitions, states and rejections.

    Raises:
        ConfigurationError: If pybreaker is missing or too old.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    import pybreaker

    _INSTALLATION.install(
        [
            Target("pybreaker", "CircuitBreaker.__init__", _make),
            Target("pybreaker", "CircuitOpenState.before_call", _call_open),
        ]
    )
    # By the true class: proxies would load what they stand for when asked for theirs.
    for found in gc.get_objects():
        if issubclass(type(found), pybreaker.CircuitBreaker):
            _watch(found)
    BREAKERS.list_also(_statuses)


def uninstrument_pybreaker() -> None:
    """Show them no more.

    Since 0.1.
    """
    _INSTALLATION.remove()
    BREAKERS.list_no_more(_statuses)
    with _WATCHED.lock:
        watched = list(_WATCHED.listeners.items())
        _WATCHED.listeners.clear()
    for breaker, listener in watched:
        if listener in breaker.listeners:
            breaker.remove_listener(listener)


class _Listener:
    """What pybreaker tells of one breaker; its methods are called with the breaker's lock held."""

    def __init__(self, name: str, state: BreakerState) -> None:
        self.name = name
        self.state = state
        self.since_unix_ns = RUNTIME.clock.time_ns()
        self.moves = 0
        self.key: BreakerKey | None = None
        self.last_fault: ErrorClass | None = None
        self.opened_by: ErrorClass | None = None

    def before_call(self, *_: Any, **__: Any) -> None:
        """Name the breaker after the tool in which it is used first."""
        if self.key is None:
            self._settle(_current())

    def success(self, *_: Any) -> None:
        """Do nothing."""

    def failure(self, breaker: Any, error: BaseException) -> None:  # noqa: ARG002 - pybreaker's
        """Remember what kind of fault it was."""
        judged = judge_exception(error, RUNTIME.clock.time_ns() / 1e9)
        self.last_fault = judged.verdict.error_class if isinstance(judged, Fault) else None

    def state_change(self, breaker: Any, before: Any, after: Any) -> None:
        """Report a transition."""
        try:
            self._change(breaker, _STATES[after.name], before)
        except Exception as fault:
            guard.swallow("reporting a transition of pybreaker's", fault)

    def status(self) -> BreakerStatus | None:
        """Return the present state, once the breaker has a name."""
        key = self.key
        if key is None:
            return None
        return BreakerStatus(
            key.name, key.tool, key.region, key.upstream, self.state, self.since_unix_ns
        )

    def _settle(self, call: CallRecord | None) -> BreakerKey:
        tool = call.tool.name if call is not None else OTHER_LABEL
        key = BreakerKey(tool, call.region if call is not None else None, None, self.name)
        self.key = key
        status = self.status()
        if status is not None:
            RUNTIME.telemetry.breaker_created(status)
        return key

    def _change(self, breaker: Any, to: BreakerState, before: Any) -> None:
        was = self.state if before is None else _STATES[before.name]
        call = _current()
        key = self.key if self.key is not None else self._settle(call)
        if was is to:
            return
        reason = _reason(was, to, breaker)
        has_counts = reason == "failure_count"
        failures = breaker.fail_counter if has_counts else 0
        if to is BreakerState.OPEN:
            self.opened_by = None if reason == "opened_by_hand" else self.last_fault
        self.state = to
        self.moves += 1
        self.since_unix_ns = RUNTIME.clock.time_ns()
        RUNTIME.telemetry.breaker_changed(
            BreakerTransition(
                name=key.name,
                tool=key.tool,
                region=key.region,
                upstream=key.upstream,
                from_state=was,
                to_state=to,
                reason=reason,
                failure_ratio=None,  # it counts failures in a row, and has no window
                calls=failures,
                failures=failures,
                error_class=self.opened_by if to is BreakerState.OPEN else None,
                at_unix_ns=self.since_unix_ns,
                call=call,
            )
        )


def _reason(was: BreakerState, to: BreakerState, breaker: Any) -> str:
    if to is BreakerState.OPEN:
        if was is BreakerState.HALF_OPEN:
            return "probe_failed"
        is_full = breaker.fail_counter >= breaker.fail_max
        return "failure_count" if is_full else "opened_by_hand"
    if to is BreakerState.HALF_OPEN:
        return "break_over"
    return "probe_succeeded" if was is BreakerState.HALF_OPEN else "closed_by_hand"


def _make(original: Any, breaker: Any, *args: Any, **kwargs: Any) -> None:
    original(breaker, *args, **kwargs)
    _watch(breaker)


def _watch(breaker: Any) -> None:
    try:
        with _WATCHED.lock:
            if breaker in _WATCHED.listeners:
                return
            name = breaker.name or f"pybreaker-{next(_UNNAMED)}"
            listener = _Listener(name, _STATES[breaker.current_state])
            _WATCHED.listeners[breaker] = listener
        breaker.add_listener(listener)
    except Exception as fault:
        guard.swallow("listening to a breaker of pybreaker's", fault)


def _call_open(original: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
    """Say of a rejection what opened the breaker, and count it with the call that it stops."""
    listener = _WATCHED.listeners.get(state._breaker)
    if listener is None:
        return original(state, *args, **kwargs)
    moves = listener.moves
    try:
        return original(state, *args, **kwargs)
    except Exception as error:
        # Where the break is over, the call has been tried after all.
        if listener.moves == moves:
            _note_rejection(listener, error)
        raise


def _note_rejection(listener: _Listener, error: Exception) -> None:
    try:
        if listener.opened_by is not None:
            error.error_class = listener.opened_by  # type: ignore[attr-defined]
        call = _current()
        if call is not None:
            call.note("breaker", "rejected")
    except Exception as fault:
        guard.swallow("noting a rejection of pybreaker's", fault)


def _statuses() -> list[BreakerStatus]:
    with _WATCHED.lock:
        listeners = list(_WATCHED.listeners.values())
    return [status for status in (each.status() for each in listeners) if status is not None]


def _current() -> CallRecord | None:
    current = CURRENT.get()
    call = current.call if isinstance(current, LaterAttempt) else current
    return call if call is not None and call.outcome is None else None
