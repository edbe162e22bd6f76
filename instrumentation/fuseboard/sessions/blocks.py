"""``with fuseboard.session(...)`` and ``with fuseboard.turn(...)``."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Budget, Repeats
from fuseboard.policy.config.checks import check_positive
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.accounts import COUNTING, Account, RepeatCounter, Spent
from fuseboard.sessions.progress import Progress
from fuseboard.sessions.scope import (
    Deadline,
    Reporter,
    Scope,
    close_scope,
    current_scope,
    open_scope,
)

PROGRESS_SECONDS: Final = 3.0
MAX_TEXT: Final = 256


class _Block:
    """Something to enter with ``with`` or ``async with``, as often as one likes."""

    __slots__ = ()

    def _inner(self, outer: Scope | None) -> Scope:
        raise NotImplementedError

    def __enter__(self) -> Self:
        open_scope(self._inner(current_scope()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        close_scope(self)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        close_scope(self)


class session(_Block):  # noqa: N801 - reads as a function: with fuseboard.session("42"):
    """Say which session and agent the calls within belong to, and what they may use up together.

    Works with ``with`` and ``async with``. Tasks and threads that are given a copy of the context
    (asyncio's, ``asyncio.to_thread``) belong to it too and share its counters. Sessions nest: an
    inner one without an id is part of the outer one, budgets and deadlines of both apply. The
    same object may be entered again, also at the same time, and goes on counting where it was.

    Args:
        id: The conversation's id; default the outer session's, or a new one.
        agent: Name of the agent that calls; default the outer one.
        budget: What the calls may use up together; also those of tools without a policy.
        timeout: Seconds from the first entry in which all calls must have ended: those that
            begin later are rejected, and the attempts of guarded tools are cut short to it.
        repeats: When a call with the same arguments is one too many.
        on_progress: Called with a :class:`Progress` while a call takes longer than
            ``progress_seconds``, from a thread of fuseboard's that all calls share; it must be
            quick. What it raises is logged once and goes no further.
        progress_seconds: When it is called first, and how often then, seconds.

    Raises:
        ConfigurationError: If an argument is wrong.

    Since 0.1.
    """

    __slots__ = ("_account", "_agent", "_deadline", "_given_id", "_id", "_repeats", "_reporter",
                 "_steps", "_timeout")  # fmt: skip

    def __init__(
        self,
        id: str | None = None,  # noqa: A002 - what the attribute is called everywhere
        *,
        agent: str | None = None,
        budget: Budget | None = None,
        timeout: float | None = None,
        repeats: Repeats | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        progress_seconds: float = PROGRESS_SECONDS,
    ) -> None:
        _check_part("budget", budget, Budget)
        _check_part("repeats", repeats, Repeats)
        check_positive("session", "timeout", timeout)
        check_positive("session", "progress_seconds", progress_seconds, is_optional=False)
        _check_callback(on_progress)
        self._given_id = self._id = _check_text("session", "id", id)
        self._agent = _check_text("session", "agent", agent)
        self._account = Account(budget) if budget is not None else None
        self._timeout = timeout
        self._deadline: Deadline | None = None
        self._repeats = RepeatCounter(repeats) if repeats is not None else None
        self._reporter = Reporter(on_progress, progress_seconds) if on_progress else None
        self._steps = 0

    @property
    def id(self) -> str | None:
        """The session's id; None before it is first entered without one."""
        return self._id

    @property
    def spent(self) -> Spent:
        """What the calls have used up of the budget; zeros without one."""
        return self._account.spent if self._account is not None else Spent(0, 0, 0.0)

    def step(self, name: str | int | None = None, *, timeout: float | None = None) -> turn:
        """Return a block for one step or turn of this session; see :class:`turn`.

        Args:
            name: Its name or number; default the next number, from 1.
            timeout: Seconds from its entry in which its calls must have ended.

        Raises:
            ConfigurationError: If an argument is wrong.
        """
        with COUNTING.lock:
            if name is None:
                name = self._steps + 1
            if isinstance(name, int) and not isinstance(name, bool):
                self._steps = name
        return turn(name, timeout=timeout)

    def _inner(self, outer: Scope | None) -> Scope:
        around = outer if outer is not None else Scope()
        with COUNTING.lock:  # it may be entered by several threads at once
            if self._id is None:
                self._id = around.session or uuid.uuid4().hex
            if self._timeout is not None and self._deadline is None:
                self._deadline = _deadline(self._timeout, "session")
        is_same = self._id == around.session
        return Scope(
            session=self._id,
            is_named=self._given_id is not None or (is_same and around.is_named),
            agent=self._agent or around.agent,
            step=around.step if is_same else None,
            accounts=((self._account,) if self._account else ()) + around.accounts,
            deadline=_earlier(self._deadline, around.deadline),
            repeats=self._repeats or around.repeats,
            reporter=self._reporter or around.reporter,
            outer=outer,
            owner=self,
        )


class turn(_Block):  # noqa: N801 - as above
    """Say which step or turn of the session the calls within belong to, and by when they end.

    The step is part of the idempotency key that tools may ask for. Works with ``with`` and
    ``async with``, also outside of a session.

    Args:
        step: Its name or number; None for that of the block around.
        timeout: Seconds from its entry in which its calls must have ended; 10 to 15 is usual.

    Raises:
        ConfigurationError: If an argument is wrong.

    Since 0.1.
    """

    __slots__ = ("_step", "_timeout")

    def __init__(self, step: str | int | None = None, *, timeout: float | None = None) -> None:
        is_number = isinstance(step, int) and not isinstance(step, bool)
        self._step = _check_text("turn", "step", str(step) if is_number else step)
        check_positive("turn", "timeout", timeout)
        self._timeout = timeout

    @property
    def step(self) -> str | None:
        """The step's name."""
        return self._step

    def _inner(self, outer: Scope | None) -> Scope:
        around = outer if outer is not None else Scope()
        own = _deadline(self._timeout, "turn") if self._timeout is not None else None
        return replace(
            around,
            step=self._step or around.step,
            deadline=_earlier(own, around.deadline),
            outer=outer,
            owner=self,
        )


class caller(_Block):  # noqa: N801 - as above
    """Say who calls, as a framework's adapter knows it: no budget, no deadline, no check.

    A session that the application opened by itself keeps its id.
    """

    __slots__ = ("_agent", "_session", "_step")

    def __init__(
        self, *, session: str | None = None, agent: str | None = None, step: str | None = None
    ) -> None:
        """Take the names over as they are; None for those that the framework does not know."""
        self._session = session
        self._agent = agent
        self._step = step

    def _inner(self, outer: Scope | None) -> Scope:
        around = outer if outer is not None else Scope()
        return replace(
            around,
            session=around.session if around.is_named else self._session or around.session,
            agent=self._agent or around.agent,
            step=self._step or around.step,
            outer=outer,
            owner=self,
        )


def _deadline(seconds: float, whose: str) -> Deadline:
    return Deadline(RUNTIME.clock.monotonic() + seconds, seconds, whose)


def _earlier(one: Deadline | None, other: Deadline | None) -> Deadline | None:
    if one is None or other is None:
        return one or other
    return min(one, other)


def _check_text(owner: str, name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT:
        raise ConfigurationError(
            f"{owner}({name}={value!r}): must be a text of 1 to {MAX_TEXT} characters, or None"
        )
    return str(value)


def _check_part(name: str, value: object, cls: type) -> None:
    if value is not None and not isinstance(value, cls):
        raise ConfigurationError(
            f"session({name}={value!r}): must be a fuseboard.{cls.__name__} or None"
        )


def _check_callback(given: object) -> None:
    if given is None:
        return
    if not callable(given):
        raise ConfigurationError(f"session(on_progress={given!r}): must be a function, or None")
    if inspect.iscoroutinefunction(given):
        raise ConfigurationError(
            f"session(on_progress={given!r}): must be a plain function, since no event loop runs "
            "in the thread that calls it; hand over with loop.call_soon_threadsafe"
        )
