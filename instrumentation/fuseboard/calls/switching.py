"""Which policy each tool has, by its code, by a file and by hand; changed while calls run.

A call takes its tool's policy when it begins and keeps it to its end. What is changed together is
changed as a whole or not at all: everything that may fail comes before the first change.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakSet

from fuseboard.calls.registration import Tool, check_policy
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.config import Policy

logger = logging.getLogger("fuseboard")


class _Declared:
    """Stands for the policy that code and file give a tool."""

    def __repr__(self) -> str:
        return "<as declared>"


DECLARED: Final = _Declared()


class PolicySource(Protocol):
    """Gives tools policies over those in the code, as a file does.

    Attributes:
        tools: The names that it mentions.
    """

    @property
    def tools(self) -> Collection[str]:
        """The names of the tools that it mentions."""

    def defaults_for(self, declared: Policy | None) -> dict[str, Any]:
        """Return the fields of a policy that a tool gets unless its code gives them."""

    def policy_for(
        self, name: str, declared: Policy | None, defaults: dict[str, Any]
    ) -> Policy | None:
        """Return a tool's policy: its code's, completed by defaults, and what is said of it."""

    def refused(self, name: str, error: ConfigurationError) -> ConfigurationError:
        """Return the error for a policy that does not go with the function of a tool."""


class _Change(NamedTuple):
    """What is to be done to one tool."""

    tool: Tool
    policy: Policy | None
    chosen: Any


class Switches:
    """All tools that functions were made into, and who decides about their policies.

    Attributes:
        source: What is asked for policies over those in the code, if anything is.
    """

    def __init__(self) -> None:
        self.source: PolicySource | None = None
        self._tools: dict[str, WeakSet[Tool]] = {}
        self._by_hand: dict[str, Policy | None] = {}
        self._left_out: set[tuple[str, str]] = set()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a new lock, as a forked child must."""
        self._lock = threading.RLock()

    def admit(self, tool: Tool) -> Any:
        """Take in a new tool; return what runs it under the policy that it gets.

        Raises:
            ConfigurationError: If the policy does not go with the function.
        """
        with self._lock:
            policy, chosen = self._decide(tool, self.source, self._by_hand)
            if not _is_same(policy, tool.policy):
                tool.take(policy)
            self._tools.setdefault(tool.info.name, WeakSet()).add(tool)
        return chosen

    def known(self) -> list[str]:
        """Return the names of the tools that are there."""
        with self._lock:
            return sorted(name for name, tools in self._tools.items() if len(tools))

    def named(self, name: str, owner: str) -> list[Tool]:
        """Return the tools of a name.

        Args:
            name: The name.
            owner: Who asks, for the message.

        Raises:
            ConfigurationError: If there are none.
        """
        with self._lock:
            found = list(self._tools.get(name, ()))
            if not found:
                raise ConfigurationError(f"{owner}: there is no tool {name!r}{self.advice(name)}")
            return found

    def advice(self, name: str) -> str:
        """Return what to append where a tool's name is unknown."""
        known = self.known()
        close = get_close_matches(name, known, 1)
        if close:
            return f"; did you mean {close[0]!r}?"
        shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        return f"; there are {shown}" if known else "; no function has been made a tool yet"

    def give(self, name: str, policy: Policy | _Declared | None) -> None:
        """Give the tools of a name a policy by hand, or what code and file declare."""
        with self._lock:
            tools = self.named(name, "configure")
            by_hand = {key: value for key, value in self._by_hand.items() if key != name}
            if not isinstance(policy, _Declared):
                by_hand[name] = policy
            changes = self._plan(tools, self.source, by_hand)
            self._by_hand = by_hand
            _apply(changes)

    def check(self, source: PolicySource | None) -> None:
        """Find out whether all tools that are there can have what a source gives them.

        Raises:
            ConfigurationError: If one of them can't.
        """
        with self._lock:
            self._plan(self._all(), source, {})

    def use(self, source: PolicySource | None) -> list[str]:
        """Have a source decide from now on, over the code and over what was given by hand.

        Returns:
            The names of the tools whose policy is another now.

        Raises:
            ConfigurationError: If a tool can't have what the source gives it; then nothing has
                changed.
        """
        with self._lock:
            changes = self._plan(self._all(), source, {})
            self.source, self._by_hand = source, {}
            _apply(changes)
        return sorted({change.tool.info.name for change in changes})

    def retarget(self, tool: Tool, target: Callable[..., Any]) -> None:
        """Let a tool run another function of the same kind, as tests do."""
        with self._lock:
            chosen = tool.choose(tool.policy, target)
            tool.target = target
            tool.put(chosen)

    def by_hand(self) -> dict[str, Policy | None]:
        """Return what was given by hand."""
        with self._lock:
            return dict(self._by_hand)

    def put_back(self, by_hand: dict[str, Policy | None]) -> None:
        """Go back to what was given by hand earlier."""
        with self._lock:
            changes = self._plan(self._all(), self.source, by_hand)
            self._by_hand = by_hand
            _apply(changes)

    # Below: called with the lock held.

    def _all(self) -> list[Tool]:
        return [tool for tools in list(self._tools.values()) for tool in list(tools)]

    def _plan(
        self,
        tools: Iterable[Tool],
        source: PolicySource | None,
        by_hand: dict[str, Policy | None],
    ) -> list[_Change]:
        """Work out what changes; everything that may fail happens here."""
        changes = []
        for tool in tools:
            policy, chosen = self._decide(tool, source, by_hand)
            # What stays equal is left alone, and with it what its layers remember.
            if not _is_same(policy, tool.policy):
                changes.append(_Change(tool, policy, chosen))
        return changes

    def _decide(
        self, tool: Tool, source: PolicySource | None, by_hand: dict[str, Policy | None]
    ) -> tuple[Policy | None, Any]:
        name = tool.info.name
        if name in by_hand:
            policy = by_hand[name]
            return policy, tool.choose(policy, tool.target)
        if source is None:
            return tool.declared, tool.choose(tool.declared, tool.target)
        defaults = self._fitting(tool, source.defaults_for(tool.declared))
        policy = source.policy_for(name, tool.declared, defaults)
        try:
            return policy, tool.choose(policy, tool.target)
        except ConfigurationError as error:
            raise source.refused(name, error) from None

    def _fitting(self, tool: Tool, defaults: dict[str, Any]) -> dict[str, Any]:
        """Leave out the defaults for all tools that this one can't have."""
        declared = tool.declared or Policy()
        given = {each.name: getattr(declared, each.name) for each in fields(declared) if each.init}
        fitting: dict[str, Any] = {}
        refused: dict[str, ConfigurationError] = {}
        # One may be legal only beside another, which therefore has to come first.
        for _ in defaults:
            for name in defaults.keys() - fitting.keys():
                try:
                    policy = Policy(**{**given, **fitting, name: defaults[name]})
                    tool.choose(policy, tool.target)
                except ConfigurationError as error:
                    refused[name] = error
                else:
                    fitting[name] = defaults[name]
        for name in sorted(refused.keys() - fitting.keys()):
            self._leave_out(tool.info.name, name, refused[name])
        return fitting

    def _leave_out(self, tool: str, name: str, error: ConfigurationError) -> None:
        if (tool, name) not in self._left_out:
            self._left_out.add((tool, name))
            logger.warning("tool %r does without the default %r: %s", tool, name, error)


def _is_same(one: Policy | None, other: Policy | None) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:
        return False  # a fallback's value may be of a kind that can't be compared


def _apply(changes: Iterable[_Change]) -> None:
    for change in changes:
        change.tool.take(change.policy)
        change.tool.put(change.chosen)


SWITCHES: Final = Switches()
after_fork_in_child(SWITCHES.renew_lock)


def configure(tool: str, policy: Policy | _Declared | None = DECLARED) -> None:
    """Change the policy of a tool while the process runs.

    Calls that run finish under the policy they began with. A breaker keeps its state unless its
    own settings change. What is given here holds until it is given anew, or until
    :func:`fuseboard.reload`.

    Args:
        tool: The tool's name.
        policy: Its policy from now on; None to only observe it; left out, what the code and the
            configuration file declare.

    Raises:
        ConfigurationError: If there is no such tool, or if it can't have that policy. Nothing
            has changed then.

    Since 0.1.
    """
    if not isinstance(policy, _Declared):
        check_policy("configure", policy)
    SWITCHES.give(tool, policy)
