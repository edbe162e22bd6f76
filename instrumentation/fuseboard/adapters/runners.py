"""Run one tool of a framework under its policy, sync or async, whichever the framework asks for."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from fuseboard.calls.bare import observe_async, observe_sync
from fuseboard.calls.driving import guard_async, guard_sync
from fuseboard.calls.invocation import RUNNING, Invocation, describe
from fuseboard.calls.judging import ReturnedFault
from fuseboard.calls.registration import Tool
from fuseboard.calls.switching import SWITCHES
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Policy

logger = logging.getLogger("fuseboard")

Ways = tuple[Callable[..., Any], Callable[..., Awaitable[Any]]]
"""For sync callers, and for async ones."""


class Runner:
    """A tool of a framework, and how to run it."""

    __slots__ = ("run_async", "run_sync", "tool")

    def __init__(self, tool: Tool, *, is_listed: bool = False) -> None:
        """Run a tool under the policy that its adapter gives it, or that a file gives its name.

        Args:
            tool: The tool.
            is_listed: Whether its policy may be changed by its name.
        """
        self.tool = tool
        tool.describe_calls(describe)
        tool.choose, tool.put = partial(_ways_to_run, tool), self.put
        self.put(_ways_to_run(tool, tool.policy, any_arguments))
        if is_listed:
            try:
                self.put(SWITCHES.admit(tool))
            except ConfigurationError as fault:
                # An agent is under way: it must not be stopped by a line in a file.
                logger.warning("%s; the tool keeps the policy that its adapter gave it", fault)

    def put(self, ways: Ways) -> None:
        """Run calls so from now on."""
        self.run_sync, self.run_async = ways


def _ways_to_run(tool: Tool, policy: Policy | None, target: Callable[..., Any]) -> Ways:
    """Return what runs a tool of a framework under a policy, for sync and for async callers."""
    if target is not any_arguments:
        raise ConfigurationError(
            f"the framework runs {tool.info.name!r} itself: force faults in the function that the "
            "framework's tool calls"
        )
    check_no_cache(tool.info.name, (policy,))
    if policy is None:
        return observe_sync(tool, _proceed), observe_async(tool, _proceed_async)
    return (
        guard_sync(tool, _for_sync(policy), _proceed),
        guard_async(tool, policy, _proceed_async),
    )


def check_no_cache(owner: str, policies: Iterable[Policy | None]) -> None:
    """Refuse policies that a framework's calls can't be guarded by.

    Args:
        owner: Who gives them, for messages.
        policies: The policies.

    Raises:
        ConfigurationError: If one of them caches.
    """
    if any(policy is not None and policy.cache is not None for policy in policies):
        raise ConfigurationError(
            f"{owner}(policy=...): a cache can't tell what of a framework's answer belongs to one "
            "call only, its id, say; give the policy with the cache to the function itself: "
            "@fuseboard.tool(policy=...)"
        )


def _proceed(**_: Any) -> Any:
    invocation = RUNNING.get()
    if invocation is None:
        return None
    invocation.reported = None
    return _unless_reported(invocation, invocation.proceed())


async def _proceed_async(**_: Any) -> Any:
    invocation = RUNNING.get()
    if invocation is None:
        return None
    invocation.reported = None
    return _unless_reported(invocation, await invocation.proceed())


def _unless_reported(invocation: Invocation, value: Any) -> Any:
    found = invocation.reported
    if found is None or found.partial_failures is not None:
        return value
    raise ReturnedFault(found, value)


def _for_sync(policy: Policy) -> Policy:
    """Return a policy without the fallbacks that only an async tool can await."""
    able = tuple(one for one in policy.fallbacks if not inspect.iscoroutinefunction(one.function))
    if len(able) == len(policy.fallbacks):
        return policy
    # Without a fallback there is nothing to switch to.
    return replace(policy, fallback=able, switch_on=policy.switch_on if able else ())


def any_arguments(**arguments: Any) -> None:
    """Stand for a tool whose arguments are given by name."""
