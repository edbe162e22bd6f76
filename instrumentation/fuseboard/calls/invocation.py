"""One tool call as a framework asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from fuseboard.classification import ResultFinding
from fuseboard.record import CallRecord


class Invocation:
    """A tool call of a framework, before and while it runs.

    Attributes:
        tool: The tool's name as the framework knows it.
        arguments: The model's arguments by name, without what the framework injects.
        call_id: The model's id of the call.
        session: The conversation, thread or session that the framework names.
        agent: The agent that the framework names.
        upstream: The server that the tool is on, if the framework names one.
        is_known: Whether the framework has such a tool; None where it can't tell.
        is_remote: Whether the tool runs on a server, where its run may be recorded as well.
        owner: The :class:`~fuseboard.adapters.running.FrameworkCalls` that runs it.
        alias: Another name that instrumentation gives to spans of the call: the tool's class.
        proceed: Runs the tool itself, once per attempt.
        is_claimed: Whether a call is recorded for it.
        reported: What another adapter, further inside, found wrong with the tool's result.
    """

    __slots__ = (
        "agent", "alias", "arguments", "call_id", "is_claimed", "is_known", "is_remote", "owner",
        "proceed", "reported", "session", "tool", "upstream",
    )  # fmt: skip

    def __init__(
        self,
        tool: object,
        arguments: object = None,
        *,
        call_id: object = None,
        session: object = None,
        agent: object = None,
        upstream: object = None,
        is_known: bool | None = True,
        is_remote: bool = False,
    ) -> None:
        """Gather what the framework says of a call; what should be a text and is none is left out.

        Args:
            tool: The tool's name.
            arguments: The model's arguments by name; what is no mapping counts as none.
            call_id: The model's id of the call.
            session: The conversation.
            agent: The agent.
            upstream: The server that the tool is on.
            is_known: Whether the framework has such a tool; None where it can't tell.
            is_remote: Whether the tool runs on a server.
        """
        self.tool = tool if isinstance(tool, str) else str(tool)
        # What is no object the framework itself will refuse, in words of its own.
        told = arguments if isinstance(arguments, Mapping) else {}
        self.arguments = {str(key): value for key, value in told.items()}
        self.call_id = _text(call_id)
        self.session = _text(session)
        self.agent = _text(agent)
        self.upstream = _text(upstream)
        self.is_known = is_known
        self.is_remote = is_remote
        self.owner: object = None
        self.alias: str | None = None
        self.proceed: Callable[[], Any] = _nothing
        self.is_claimed = False
        self.reported: ResultFinding | None = None

    def describe(self, call: CallRecord) -> None:
        """Put what the framework says on the record of the call."""
        if self.call_id is not None:
            call.call_id = self.call_id
        if self.session is not None:
            call.session = self.session
        if self.agent is not None:
            call.agent = self.agent


RUNNING: Final[ContextVar[Invocation | None]] = ContextVar("fuseboard_invocation", default=None)
"""The invocation that runs here."""


def describe(call: CallRecord) -> None:
    """Put what the framework says of the running invocation on the record of its call."""
    invocation = RUNNING.get()
    if invocation is not None:
        invocation.describe(call)


def claim(call: CallRecord) -> None:
    """Do the same for a tool of fuseboard's inside a tool of the framework's, once.

    Further tools that it calls in turn are no calls of the model.
    """
    invocation = RUNNING.get()
    if invocation is not None and not invocation.is_claimed:
        invocation.is_claimed = True
        invocation.describe(call)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _nothing() -> None:
    return None
