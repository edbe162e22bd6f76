"""Refuse at once what a policy asks for and its function can't do, not at the first call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Policy


def check_stream(name: str, policy: Policy) -> None:
    """Refuse what only an answer as a whole can have, for a tool that yields items.

    Raises:
        ConfigurationError: If the policy asks for it.
    """
    validation = policy.validation
    if validation is not None and validation.checks:
        raise ConfigurationError(
            f"Policy(validation=...) for {name!r}: of a stream only non_empty can be checked, "
            "since its items are delivered before its end; check them in the tool"
        )
    if policy.poll is not None:
        raise ConfigurationError(
            f"Policy(poll=...) for {name!r}: a stream has no ticket to ask with; submit the job in "
            "a function"
        )
    for fallback in policy.fallbacks:
        value = fallback.value
        # One text would be served letter by letter, a dict as its keys.
        is_one = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
        if fallback.function is None and is_one:
            raise ConfigurationError(
                f"Fallback(value={value!r}) for {name!r}: what stands in for a stream must be its "
                "items; write a list of them"
            )


def check_sync(name: str, policy: Policy) -> None:
    """Refuse functions that would have to be awaited, for a tool that can't.

    Raises:
        ConfigurationError: If the policy has one.
    """
    feedback, poll = policy.feedback, policy.poll
    if feedback is not None and is_async(feedback.repair):
        raise ConfigurationError(
            f"Feedback(repair={feedback.repair!r}) for {name!r}: an async repair needs an async "
            "tool"
        )
    if poll is not None and is_async(poll.check):
        raise ConfigurationError(
            f"Poll(check={poll.check!r}) for {name!r}: an async check needs an async tool"
        )


def is_async(function: Callable[..., Any] | None) -> bool:
    """Tell whether calling a function gives something that has to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
