"""The exceptions that fuseboard itself raises. A tool's own exceptions pass through unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fuseboard.conventions import ErrorClass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with arguments or with an answer; never holds the value itself.

    Attributes:
        path: Where it is, for example ``items[2].price``; empty for the whole.
        reason: What is wrong there, in words.

    Since 0.1.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class FuseboardError(Exception):
    """Base of every exception that fuseboard raises; all of them can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are unpickled by calling their class with ``args``, which here is the text.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(cls: type[FuseboardError], args: tuple[Any, ...]) -> FuseboardError:
    # Without __init__, whose arguments are others; the attributes come from the pickled state.
    error = cls.__new__(cls)
    error.args = args
    return error


class ConfigurationError(FuseboardError, ValueError):
    """A setting is wrong; the message names the argument, its value and the legal range."""


class CallRejectedError(FuseboardError):
    """A policy refused to make an attempt."""


class CircuitOpenError(CallRejectedError):
    """A circuit breaker rejected the call.

    Attributes:
        breaker: Name of the breaker, ``tool/region/upstream``.
        retry_after: Seconds until the breaker next admits a probe; None if held open by hand.
        error_class: The class of fault that opened the breaker.
    """

    def __init__(
        self, tool: str, breaker: str, retry_after: float | None, error_class: ErrorClass
    ) -> None:
        when = "held open by hand" if retry_after is None else f"next probe in {retry_after:.1f} s"
        super().__init__(f"{tool!r} was not called: circuit breaker {breaker!r} is open ({when})")
        self.breaker = breaker
        self.retry_after = retry_after
        self.error_class = error_class


class BudgetExhaustedError(FuseboardError):
    """The total time budget of a call ran out, or that of its turn or session.

    Attributes:
        budget: The budget in seconds.
    """

    def __init__(self, tool: str, budget: float, whose: str = "its total time budget") -> None:
        super().__init__(f"{tool!r} used up {whose} of {budget:g} s")
        self.budget = budget


_SESSION_BUDGETS = {
    "retries": "its session has used up its budget of {:g} retries",
    "requests": "its session has used up its budget of {:g} requests; end it, or sum up",
    "cost": "its session has reached its cost budget of {:g}; end it, or sum up",
    "turn": "the {:g} s of its turn are over; answer with what there is",
    "session": "the {:g} s of its session are over; answer with what there is",
}


class SessionBudgetError(CallRejectedError, BudgetExhaustedError):
    """The session, or its turn, has used up what all of its calls share.

    Attributes:
        budget: What was given to it: seconds, requests or cost.
        kind: What was used up: ``requests``, ``cost``, or the time of the ``turn`` or
            ``session``.
    """

    def __init__(self, tool: str, kind: str, budget: float) -> None:
        why = _SESSION_BUDGETS[kind].format(budget)
        FuseboardError.__init__(self, f"{tool!r} was not called: {why}")
        self.budget = budget
        self.kind = kind


class RepeatedCallError(CallRejectedError):
    """The session has made the same call, with the same arguments, too often.

    Attributes:
        times: How often, this time included.
    """

    def __init__(self, tool: str, times: int) -> None:
        super().__init__(
            f"{tool!r} was not called: this is call number {times} with the same arguments in "
            "this session, and its answer will not change; use the answers there are, or call "
            "it with other arguments"
        )
        self.times = times


class AttemptTimeoutError(FuseboardError, TimeoutError):
    """One attempt at a tool took longer than its timeout.

    Attributes:
        timeout: The timeout in seconds.
    """

    def __init__(self, tool: str, timeout: float) -> None:
        super().__init__(f"{tool!r} did not answer within its timeout of {timeout:g} s")
        self.timeout = timeout


class AbandonedThreadsError(CallRejectedError):
    """Too many synchronous calls outlived their timeout and still hold a thread each.

    Attributes:
        limit: How many such threads are allowed in this process.
    """

    def __init__(self, tool: str, limit: int) -> None:
        super().__init__(
            f"{tool!r} was not called: {limit} earlier calls timed out and still hold a thread "
            "each; give the tool's own client a shorter timeout, so that they end"
        )
        self.limit = limit


class LimitExceededError(CallRejectedError):
    """A limit of ours had no place for the call, even after waiting.

    Attributes:
        retry_after: Seconds until the limit's rate admits another attempt; None where that
            depends on when running calls end.
    """

    def __init__(self, tool: str, waited: float, retry_after: float | None) -> None:
        waiting = f"after a wait of {waited:.2g} s " if waited > 0 else ""
        if retry_after is None:
            why = "too many calls of it run and wait already"
        else:
            why = f"too many of its calls begin; its next turn is in {retry_after:.2g} s"
        super().__init__(f"{tool!r} was not called: its limit is reached {waiting}({why})")
        self.retry_after = retry_after


class InvalidResultError(FuseboardError):
    """Validation refused what a tool returned, and nothing was served instead.

    Attributes:
        tool: Name of the tool.
        value: What it returned; of a stream without items, its return value. A value that
            can't be pickled is left out of the pickled error.
        problems: What is wrong with it, at most ``validation.MAX_PROBLEMS``.
    """

    def __init__(
        self,
        tool: str,
        value: object,
        problem: str,
        advice: str,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(f"{tool!r} {problem}, which its policy's validation refuses: {advice}")
        self.tool = tool
        self.value = value
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        import pickle  # whoever asks for this has it

        state = dict(self.__dict__)
        try:
            pickle.dumps(self.value)
        except Exception:
            state["value"] = None
        return _rebuild, (type(self), self.args), state


class AskUserError(Exception):
    """Raised by a tool or a fallback that cannot go on before the user has answered.

    It is no error of the call, whose outcome is ``interrupted``: nothing is tried again or
    served instead, no breaker counts it, and it reaches the caller as it was raised.

    Attributes:
        question: What to ask the user.

    Since 0.1.
    """

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question
