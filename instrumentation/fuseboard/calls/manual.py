"""``with fuseboard.call(...)``: for tool calls in code that can't be decorated."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from sys import exception
from types import TracebackType
from typing import Any, Final, Literal, Self

from fuseboard.calls.bare import end_raised, end_returned
from fuseboard.calls.current import CurrentCall
from fuseboard.calls.gate import reject
from fuseboard.calls.recording import Entered, enter, leave, open_attempt, open_call
from fuseboard.calls.registration import Tool, check_name, check_names
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child
from fuseboard.record import AttemptRecord, CallRecord
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.scope import Scope, current_gate

MAX_NAMES: Final = 256
"""A bound on tools registered by calling them, because a model may invent names."""

_Key = tuple[str, str | None, str | None, str, frozenset[str]]


class _Called:
    """The tools that were made by calling them."""

    def __init__(self) -> None:
        self.tools: dict[_Key, Tool] = {}
        self.renew_lock()

    def renew_lock(self) -> None:
        self.lock = threading.RLock()


_CALLED: Final = _Called()
after_fork_in_child(_CALLED.renew_lock)


class call:  # noqa: N801 - reads as a function: with fuseboard.call("search") as call
    """Record one tool call around a block of code.

    The block's exception, if any, passes through; what it hands to :meth:`set_result` is
    classified as a returned value would be. Works with ``with`` and ``async with``.

    Args:
        name: The tool's name.
        args: The arguments by name.
        region: The region it acts in; default the process's own.
        upstream: The service it depends on.
        type: ``function``, ``extension`` or ``datastore``.
        call_id: The model's id of the call.
        ignore_arguments: Names of arguments that are left out of the hash.

    Raises:
        ConfigurationError: If an argument is wrong.

    Since 0.1.
    """

    __slots__ = ("_ambient", "_args", "_attempt", "_call_id", "_entered", "_record", "_result",
                 "_scope", "_tool")  # fmt: skip

    def __init__(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        region: str | None = None,
        upstream: str | None = None,
        type: Literal["function", "extension", "datastore"] = "function",  # noqa: A002
        call_id: str | None = None,
        ignore_arguments: Collection[str] = (),
    ) -> None:
        if args is not None and not isinstance(args, Mapping):
            raise ConfigurationError(f"call(args={args!r}): must be a mapping by name, or None")
        if call_id is not None and not isinstance(call_id, str):
            raise ConfigurationError(f"call(call_id={call_id!r}): must be a text, or None")
        ignored = frozenset(check_names("call", "ignore_arguments", ignore_arguments))
        self._tool = _tool_called(check_name("call", name), region, upstream, type, ignored)
        self._args = dict(args or {})
        self._call_id = call_id
        self._result: Any = None
        self._record: CallRecord | None = None
        self._attempt: AttemptRecord | None = None
        self._entered: Entered | None = None
        self._scope: Scope | None = None
        self._ambient: BaseException | None = None

    def set_result(self, value: Any) -> None:
        """Say what the call returned."""
        self._result = value

    def set_cost(self, cost: float) -> None:
        """Say what the call costs, in a unit of your own.

        Raises:
            ValueError: If it is negative or not finite.
        """
        self._current().set_cost(cost)

    @property
    def idempotency_key(self) -> str:
        """See :attr:`CurrentCall.idempotency_key`."""
        return self._current().idempotency_key

    @property
    def request_id(self) -> str:
        """See :attr:`CurrentCall.request_id`."""
        return self._current().request_id

    @property
    def attempt(self) -> int:
        """The number of the attempt: 1, since nothing is retried here."""
        return 1

    def __enter__(self) -> Self:
        if self._record is not None:
            raise RuntimeError("this call has been made; write fuseboard.call(...) for each")
        self._ambient = exception()
        self._record = open_call(self._tool, (), self._args, self._call_id)
        if RUNTIME.has_gates:
            self._pass_gate(self._record)
        self._attempt = open_attempt(self._record)
        self._entered = enter(self._record)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        record, attempt, entered = self._record, self._attempt, self._entered
        if record is None or attempt is None or entered is None:
            return
        leave(entered)
        if error is None:
            end_returned(record, self._result)
        else:
            end_raised(self._tool, record, error, (), self._args, self._ambient)
        if self._scope is not None:
            self._scope.call_ended(record)
        self._ambient = None

    def _pass_gate(self, record: CallRecord) -> None:
        """Ask the session, which may reject the call."""
        self._scope = scope = current_gate()
        if scope is None:
            return
        scope.watch(record)
        refusal = scope.refuse(record)
        if refusal is not None:
            reject(self._tool, record, refusal)
            raise refusal

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def _current(self) -> CurrentCall:
        if self._record is None:
            raise RuntimeError("the call has not begun; use it within its with statement")
        return CurrentCall(self._record)


def _any(**arguments: Any) -> None:
    """Stand for code whose arguments are given by name."""


def _tool_called(
    name: str,
    region: str | None,
    upstream: str | None,
    kind: str,
    ignored: frozenset[str],
) -> Tool:
    tools = _CALLED.tools
    key = (name, region, upstream, kind, ignored)
    try:
        known = tools.get(key)
    except TypeError:  # an option that can't be a key is none that is legal, as Tool will say
        known = None
    if known is not None:
        return known
    with _CALLED.lock:
        is_new_name = all(name != known_name for known_name, *_ in tools)
        may_register = not is_new_name or len(tools) < MAX_NAMES
        made = Tool(
            _any,
            name=name,
            region=region,
            upstream=upstream,
            type=kind,
            ignore_arguments=ignored,
            owner="call",
            is_registered=is_new_name and may_register,
        )
        if len(tools) < MAX_NAMES:
            tools[key] = made
        return made
