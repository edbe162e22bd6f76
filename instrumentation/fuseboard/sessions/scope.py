"""The session, agent and step that a call belongs to, as context variables carry them.

A scope never changes; entering a block makes a new one around the outer one's contents. What
counts (accounts, repeats) is shared by reference, so threads and tasks that were given a copy
of the context spend from the same budget.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from fuseboard.errors import FuseboardError, RepeatedCallError, SessionBudgetError
from fuseboard.record import CallRecord
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.accounts import Account, RepeatCounter, take_attempt
from fuseboard.sessions.progress import TICKER, Progress


class Deadline(NamedTuple):
    """When calls must have ended.

    Attributes:
        at: Monotonic seconds; first, so that the earlier of two is the lesser.
        seconds: How long that was from its start.
        whose: ``turn`` or ``session``.
    """

    at: float
    seconds: float
    whose: str

    def left(self) -> float:
        """Return the seconds that are left; negative once it has passed."""
        return self.at - RUNTIME.clock.monotonic()


class Reporter(NamedTuple):
    """Who is told about slow calls, and after how many seconds."""

    tell: Callable[[Progress], object]
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What holds for the calls that begin here.

    Attributes:
        session: The conversation's id.
        is_named: Whether the application gave that id itself.
        agent: The agent that calls.
        step: The step or turn of the session.
        accounts: Budgets that calls spend from: all of them.
        deadline: The earliest deadline.
        repeats: Counts calls with the same arguments.
        reporter: Who is told about slow calls.
        outer: The scope around this one.
        owner: The block that made it.
        is_gate: Whether it may reject calls or has to follow them, also those of bare tools.
    """

    session: str | None = None
    is_named: bool = False
    agent: str | None = None
    step: str | None = None
    accounts: tuple[Account, ...] = ()
    deadline: Deadline | None = None
    repeats: RepeatCounter | None = None
    reporter: Reporter | None = None
    outer: Scope | None = None
    owner: object = None
    is_gate: bool = field(init=False)

    def __post_init__(self) -> None:
        parts = (self.deadline, self.repeats, self.reporter, self.accounts or None)
        object.__setattr__(self, "is_gate", any(part is not None for part in parts))

    def stamp(self, call: CallRecord) -> None:
        """Write on a record who calls; what a framework said of the agent is more exact."""
        if call.session is None or self.is_named:
            call.session = self.session
        if call.agent is None:
            call.agent = self.agent
        call.step = self.step

    def watch(self, call: CallRecord) -> None:
        """Tell the reporter about a call if it turns out to be slow."""
        if self.reporter is not None:
            TICKER.watch(call, self.reporter.tell, self.reporter.seconds)

    def refuse_for_time(self, tool: str) -> SessionBudgetError | None:
        """Return why no attempt may begin now, if a deadline has passed."""
        deadline = self.deadline
        if deadline is None or deadline.left() > 0:
            return None
        return SessionBudgetError(tool, deadline.whose, deadline.seconds)

    def refuse_repeat(self, call: CallRecord) -> RepeatedCallError | None:
        """Count a call; return why it may not be made, if it repeats others."""
        return self.repeats.check(call) if self.repeats is not None else None

    def take_attempt(self, tool: str, *, is_retry: bool) -> SessionBudgetError | None:
        """Spend an attempt, or return why none may be made."""
        return take_attempt(self.accounts, tool, is_retry=is_retry) if self.accounts else None

    def may_retry_after(self, seconds: float, call: CallRecord) -> bool:
        """Tell whether a retry of a call after a wait is within budgets and deadlines."""
        if self.deadline is not None and seconds >= self.deadline.left():
            return False
        return all(account.may_retry(call.cost or 0.0) for account in self.accounts)

    def refuse(self, call: CallRecord) -> FuseboardError | None:
        """Ask everything at once, for a call that makes a single attempt."""
        name = call.tool.name
        return (
            self.refuse_for_time(name)
            or self.refuse_repeat(call)
            or self.take_attempt(name, is_retry=False)
        )

    def call_ended(self, call: CallRecord) -> None:
        """Spend what a call cost."""
        cost = call.cost
        if cost:
            for account in self.accounts:
                account.spend(cost)


SCOPE: Final[ContextVar[Scope | None]] = ContextVar("fuseboard_scope", default=None)


def current_scope() -> Scope | None:
    """Return the scope that calls begin in here."""
    return SCOPE.get()


def current_gate() -> Scope | None:
    """Return the scope if it may reject calls or has to follow them."""
    scope = SCOPE.get()
    return scope if scope is not None and scope.is_gate else None


def open_scope(scope: Scope) -> None:
    """Let calls begin in a scope from here on."""
    # Until the first of them is opened in this process, calls do not even look.
    RUNTIME.has_scopes = True
    if scope.is_gate:
        RUNTIME.has_gates = True
    SCOPE.set(scope)


def close_scope(owner: object) -> None:
    """Leave the innermost scope that a block owns; those within it stay, if there are any.

    Blocks may end in another order than the reverse of that in which they began, as when the
    garbage collector ends a generator within the block of somebody else. In another context than
    the one that it was opened in, nothing happens.
    """
    within: list[Scope] = []
    scope = SCOPE.get()
    while scope is not None and scope.owner is not owner:
        within.append(scope)
        scope = scope.outer
    if scope is None:
        return
    rest = scope.outer
    for inner in reversed(within):
        rest = replace(inner, outer=rest)
    SCOPE.set(rest)
