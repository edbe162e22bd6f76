"""What is known of a tool once it is decorated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from fuseboard import guard
from fuseboard.arguments import hash_arguments
from fuseboard.calls.binding import Binder, make_binder, signature_of
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Policy
from fuseboard.policy.config.checks import check_plain
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import CallRecord, ToolInfo
from fuseboard.runtime import RUNTIME

Resolver = Callable[[Mapping[str, object]], str | None]
"""Returns the region or upstream of a call from its bound arguments; None if they name none."""

Chooser = Callable[[Policy | None, Callable[..., Any]], Any]
"""Returns what runs a function under a policy; raises ConfigurationError if it can't."""

TOOL_TYPES: Final = ("function", "extension", "datastore")
ON_ERROR: Final = ("raise", "packet")
MAX_NAME: Final = 128
_FIXED: Final = frozenset({int, float, bool, type(None)})
_SHORT: Final = 256


class Tool:
    """A decorated function: its names, its policy, and how to bind its arguments.

    Attributes:
        declared: The policy that the code gives it.
        policy: The policy that it has now.
        target: The function that it runs.
        replaced: What the wrapper of a function or coroutine function hands its calls to, once
            the policy or the target was changed; None until then.
        cached: What its cache remembers, beside the settings of that cache; None without one.
        choose: Returns what runs a target under a policy, or refuses the policy.
        put: Has calls from now on run by what ``choose`` returned.
    """

    __slots__ = (
        "__weakref__",
        "_bind_whole",
        "bind",
        "cached",
        "choose",
        "declared",
        "describe",
        "hashes_arguments",
        "ignored",
        "info",
        "looks_at_arguments",
        "on_error",
        "policy",
        "put",
        "region",
        "region_of",
        "replaced",
        "signature",
        "target",
        "upstream_of",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        policy: Policy | None = None,
        region: str | Resolver | None = None,
        upstream: str | Resolver | None = None,
        type: str = "function",  # noqa: A002 - the attribute is called gen_ai.tool.type
        regions: Collection[str] = (),
        ignore_arguments: Collection[str] = (),
        hash_arguments: bool = True,
        on_error: str = "raise",
        is_registered: bool = True,
        owner: str = "tool",
    ) -> None:
        """Check the options and register the tool, unless ``is_registered`` is false.

        Messages say that the options are those of ``owner``.

        Raises:
            ConfigurationError: If an option is wrong.
        """
        self.region, self.region_of = _split(owner, "region", region)
        fixed_upstream, self.upstream_of = _split(owner, "upstream", upstream)
        self.declared = self.policy = check_policy(owner, policy)
        self.target = function
        self.replaced: Callable[..., Any] | None = None
        self.choose: Chooser = _is_fixed
        self.put: Callable[[Any], None] = self._replace
        self.cached: tuple[object, object] | None = None
        self.ignored = frozenset(check_names(owner, "ignore_arguments", ignore_arguments))
        if not isinstance(hash_arguments, bool):
            raise ConfigurationError(f"{owner}(hash_arguments={hash_arguments!r}): must be a bool")
        self.hashes_arguments = hash_arguments
        if on_error not in ON_ERROR:
            raise ConfigurationError(f"{owner}(on_error={on_error!r}): must be one of {ON_ERROR}")
        self.on_error = on_error
        self.looks_at_arguments = bool(self.region_of or self.upstream_of)
        self.describe: Callable[[CallRecord], None] | None = None
        self.bind: Binder = make_binder(function)
        self._bind_whole: Binder | None = None
        self.signature: inspect.Signature | None = signature_of(function)
        _check_ignored(owner, self.ignored, self.signature)
        if type not in TOOL_TYPES:
            raise ConfigurationError(f"{owner}(type={type!r}): must be one of {TOOL_TYPES}")
        self.info = ToolInfo(
            name=check_name(owner, name if name is not None else _name_of(owner, function)),
            type=type,
            regions=tuple(check_names(owner, "regions", regions)) or _just(self.region),
            upstream=fixed_upstream,
            hash_of=self._hash if hash_arguments else None,
        )
        self.take(self.policy)
        if is_registered:
            _register(self.info)

    def describe_calls(self, describe: Callable[[CallRecord], None]) -> None:
        """Let ``describe`` add what a framework knows to the record of each call at its start."""
        self.describe = describe
        self.looks_at_arguments = True

    def _replace(self, chosen: Callable[..., Any]) -> None:
        self.replaced = chosen

    def take(self, policy: Policy | None) -> None:
        """Have a policy from now on: what its layers remember is kept if their settings are."""
        name, before = self.info.name, self.policy
        if policy is not None and policy.breaker is not None:
            BREAKERS.declare(name, policy.breaker)
        elif before is not None and before.breaker is not None:
            BREAKERS.withdraw(name)
        if policy is not None and policy.limit is not None:
            LIMITERS.declare(name, policy.limit)
        self.policy = policy

    def can_hash_later(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Tell whether the arguments are small values that cannot change.

        Those are hashed when somebody asks, on another thread; all else at once.
        """
        for value in (*args, *kwargs.values()) if args else kwargs.values():
            kind = type(value)
            if not (len(value) <= _SHORT if kind is str else kind in _FIXED):
                return False
        return True

    def instance_of(
        self,
        key: Callable[[Mapping[str, Any]], object],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> str | None:
        """Return which of the tool's breakers a call belongs to, as the breaker's ``key`` says."""
        try:
            if self._bind_whole is None:
                self._bind_whole = make_binder(self.target, keeps_receiver=True)
            found = key(self._bind_whole(args, kwargs))
            if found is None:
                return None
            if not isinstance(found, str | int | float):
                # Its text may hold an address in memory, another one for each object.
                raise TypeError(f"Breaker(key=...) returned {type(found).__name__}")
            return str(found)[:MAX_NAME] or None
        except Exception as fault:
            guard.swallow("finding the breaker of a call by its key", fault)
            return None

    def _hash(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        try:
            return hash_arguments(self.bind(args, kwargs), self.ignored)
        except Exception as fault:
            guard.swallow("looking at the arguments of a call", fault)
            return None


def _register(info: ToolInfo) -> None:
    try:
        RUNTIME.register(info)
    except Exception as fault:
        guard.swallow("registering a tool", fault)


def check_name(owner: str, name: object) -> str:
    """Return a tool's name if it may be one.

    Raises:
        ConfigurationError: If it is no text, empty or too long.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME:
        raise ConfigurationError(
            f"{owner}(name={name!r}): must be a text of 1 to {MAX_NAME} characters"
        )
    return name


def _name_of(owner: str, function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)  # functools.partial
    name = getattr(inner, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise ConfigurationError(f"{owner}(<lambda>): a lambda has no name; give one with name=...")
    return str(name)


def _split(owner: str, option: str, given: object) -> tuple[str | None, Resolver | None]:
    if given is None:
        return None, None
    if isinstance(given, str) and given:
        return str(given), None
    if callable(given):
        check_plain(owner, option, given, "a text, or a function of the bound arguments")
        return None, given
    raise ConfigurationError(
        f"{owner}({option}={given!r}): must be a text, or a function of the bound arguments"
    )


def check_policy(owner: str, policy: object) -> Policy | None:
    """Return a policy if it is one, or None.

    Raises:
        ConfigurationError: If it is something else.
    """
    if policy is None or isinstance(policy, Policy):
        return policy
    raise ConfigurationError(f"{owner}(policy={policy!r}): must be a fuseboard.Policy or None")


def check_names(owner: str, option: str, names: Collection[str]) -> Collection[str]:
    """Return the names that an option lists if they are such.

    Raises:
        ConfigurationError: If it is no collection, or not all of it are texts.
    """
    is_collection = isinstance(names, Collection) and not isinstance(names, str | bytes)
    if not is_collection or not all(isinstance(name, str) and name for name in names):
        raise ConfigurationError(f"{owner}({option}={names!r}): must be a collection of texts")
    return names


def _check_ignored(
    owner: str, ignored: Collection[str], signature: inspect.Signature | None
) -> None:
    """Refuse names that no argument can have; a misspelt one would change every hash."""
    if signature is None:
        return
    parameters = signature.parameters
    unknown = sorted(set(ignored) - parameters.keys())
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if unknown and not takes_any:
        raise ConfigurationError(
            f"{owner}(ignore_arguments={unknown!r}): the function has no such parameter; it has "
            f"{', '.join(parameters) or 'none'}"
        )


def _is_fixed(policy: Policy | None, target: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ARG001
    raise ConfigurationError("a tool that is called with fuseboard.call(...) takes no policy")


def _just(region: str | None) -> tuple[str, ...]:
    return (region,) if region else ()
