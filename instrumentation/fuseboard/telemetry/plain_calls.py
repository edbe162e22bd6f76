"""The ordinary call on its way to the collector: one flat tuple.

Most calls succeed at their first attempt and leave nothing behind but names, ids and times.
What waits in the export queue is walked by the garbage collector again and again; a tuple of
nothing but texts and numbers it walks once. So such a call is queued as a tuple, its record and
its span end with the call, and the export thread makes both again.
"""

from __future__ import annotations

from typing import Any, Final

from fuseboard.conventions import BreakerState, Outcome, ResultSource
from fuseboard.record import BegunCall, CallRecord, ToolInfo

PlainCall = tuple[Any, ...]
"""A call that ended as its only attempt did; see :func:`flatten`."""

_MAX_TOOLS: Final = 4096
_ATTEMPT_ID: Final = 9
"""Where :func:`flatten` puts the id of a failed attempt's span."""
_State = BreakerState | None


class PlainTools:
    """The tools whose calls may become tuples; a name stands for one tool for good."""

    def __init__(self) -> None:
        """Know no tool."""
        self.known: dict[str, ToolInfo] = {}

    def add(self, tool: ToolInfo) -> None:
        """Know a tool, unless another one has its name or there are too many."""
        if len(self.known) < _MAX_TOOLS:
            self.known.setdefault(tool.name, tool)


def flatten(
    call: CallRecord,
    trace_id: int,
    span_id: int,
    parent_id: int | None,
    is_remote: bool,
    attempt_id: int | None = None,
) -> PlainCall:
    """Return what is worth keeping of a plain call that has ended; nothing in it is mutable.

    Args:
        call: A call of a known tool whose ``is_plain`` is still true.
        trace_id: 128 bits.
        span_id: 64 bits.
        parent_id: 64 bits; None for a root.
        is_remote: Whether the parent is in another process.
        attempt_id: Where the call failed, the id of the span of its attempt, 64 bits.
    """
    state, kwargs, fault = call.breaker_state, call.unhashed_kwargs, call.fault
    names, values = (None, None) if kwargs is None else (tuple(kwargs), tuple(kwargs.values()))
    failure = None if fault is None else (fault, call.layer, call.retry_strategy)
    return (
        call.tool.name,
        call.region,
        call.upstream,
        call.started_unix_ns,
        call.duration,
        trace_id,
        span_id,
        parent_id,
        is_remote,
        attempt_id,
        failure,
        call.call_id,
        call.agent,
        call.session,
        None if state is None else state._value_,  # .value is a property, and dear
        call.args_hash if kwargs is None else None,
        call.unhashed_args,
        names,
        values,
    )


def spans_in(record: object) -> int:
    """Return how many spans a record in the export queue stands for."""
    return 2 if isinstance(record, tuple) and record[_ATTEMPT_ID] is not None else 1


def unflatten(plain: PlainCall, tools: PlainTools) -> CallRecord:
    """Return the record that a tuple was made of; its monotonic start is not known any more."""
    name, region, upstream, started_unix_ns, duration = plain[:5]
    failure, call_id, agent, session, state, args_hash, args, names, values = plain[10:]
    call = BegunCall(tools.known[name], region, upstream, started_unix_ns, 0.0, args_hash, call_id)
    if names is not None:
        call.hash_later(args, dict(zip(names, values, strict=True)))
    call.agent = agent
    call.session = session
    call.breaker_state = None if state is None else BreakerState(state)
    call.duration = duration
    if failure is None:
        call.result_source = ResultSource.LIVE
        call.outcome = Outcome.OK
    else:
        call.fault, call.layer, call.retry_strategy = failure
        call.outcome = Outcome.ERROR
    return call
