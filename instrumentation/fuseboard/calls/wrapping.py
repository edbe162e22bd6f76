"""``tool`` and ``wrap``: make a tool of a function without changing what anybody sees of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Coroutine
from typing import (
    Any,
    Final,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from fuseboard.calls.bare import observe_async, observe_sync
from fuseboard.calls.driving import guard_async, guard_sync
from fuseboard.calls.packets import ErrorPacket, answer_in_packets
from fuseboard.calls.registration import Resolver, Tool
from fuseboard.calls.streams import stream_async, stream_sync
from fuseboard.calls.suitability import check_stream, check_sync
from fuseboard.calls.switching import SWITCHES
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Cache, Policy
from fuseboard.record import TOOL_MARK

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

MARK: Final = TOOL_MARK


class _Options(TypedDict, total=False):
    """The options that do not change what a tool returns."""

    name: str | None
    policy: Policy | None
    region: str | Resolver | None
    upstream: str | Resolver | None
    type: Literal["function", "extension", "datastore"]
    regions: Collection[str]
    ignore_arguments: Collection[str]
    hash_arguments: bool


class _RaisingOptions(_Options, total=False):
    on_error: Literal["raise"]


class ToolOptions(_Options, total=False):
    """Options of :func:`tool`, which describes them, and :func:`wrap`."""

    on_error: Literal["raise", "packet"]


class _WithPackets(Protocol):
    """Makes a tool that returns a packet where its function raises."""

    @overload
    def __call__(
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Callable[P, Coroutine[Any, Any, R | ErrorPacket]]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Callable[P, R | ErrorPacket]: ...


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(*, on_error: Literal["packet"], **options: Unpack[_Options]) -> _WithPackets: ...
@overload
def tool(**options: Unpack[_RaisingOptions]) -> Callable[[F], F]: ...
def tool(fn: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a function a tool: each call becomes a span and counts in metrics.

    Works for plain and coroutine functions, generators, async generators, and methods of all
    kinds in either order of decorators. Without a policy it only observes: value, exception and
    signature stay the same.

    Args:
        fn: The function, where the decorator is used without parentheses.
        name: The tool's name; default the function's.
        policy: A :class:`fuseboard.Policy`, how its calls are guarded; default not at all.
        region: The region it acts in, or a function of the bound arguments that returns it;
            default the process's own.
        upstream: The service it depends on, likewise.
        type: ``function`` (the default), ``extension`` or ``datastore``.
        regions: The regions it may act in, whose metric series then exist from the start.
        ignore_arguments: Names of arguments that are left out of the arguments' hash because
            they change from call to call.
        hash_arguments: Whether the arguments are hashed; default True.
        on_error: ``raise`` (the default), or ``packet``: return an :class:`ErrorPacket` instead
            of raising a fault. Cancellation and control flow are raised all the same.

    Returns:
        The tool, of the same type as the function.

    Raises:
        ConfigurationError: If an option is wrong or does not go with the function.

    Since 0.1.
    """
    if fn is None:
        return lambda function: _make("tool", function, options)
    return _make("tool", fn, options)


@overload
def wrap(
    fn: Callable[P, Coroutine[Any, Any, R]],
    /,
    *,
    on_error: Literal["packet"],
    **options: Unpack[_Options],
) -> Callable[P, Coroutine[Any, Any, R | ErrorPacket]]: ...
@overload
def wrap(
    fn: Callable[P, R], /, *, on_error: Literal["packet"], **options: Unpack[_Options]
) -> Callable[P, R | ErrorPacket]: ...
@overload
def wrap(fn: F, /, **options: Unpack[_RaisingOptions]) -> F: ...
def wrap(fn: Any, /, **options: Unpack[ToolOptions]) -> Any:
    """Return a tool that calls ``fn``, for functions that are not yours to decorate.

    Args:
        fn: A function, method, partial or callable object.
        **options: Those of :func:`tool`.

    Raises:
        ConfigurationError: If an option is wrong or does not go with the function.

    Since 0.1.
    """
    return _make("wrap", fn, options)


def _make(owner: str, fn: F, options: ToolOptions) -> F:
    """Make a tool of a function for ``owner``, whose name error messages give."""
    unknown = options.keys() - ToolOptions.__annotations__.keys()
    if unknown:
        raise ConfigurationError(
            f"{owner}(): unknown option {min(unknown)!r}; there are "
            f"{', '.join(sorted(ToolOptions.__annotations__))}"
        )
    found: Any = fn
    if isinstance(found, staticmethod | classmethod):
        # Wrapped inside and put back, so that the class binds it as before.
        return cast("F", type(found)(_make(owner, found.__func__, options)))
    if inspect.isclass(found) or not callable(found):
        raise ConfigurationError(
            f"{owner}({found!r}): must be a function or a method{_advice(owner, found)}"
        )
    if hasattr(found, MARK):
        raise ConfigurationError(
            f"{owner}({found!r}): is a tool already; decorated twice, every call would count twice"
        )
    known = Tool(found, owner=owner, **options)
    known.choose = functools.partial(_choose, known)
    chosen = SWITCHES.admit(known)
    if known.on_error == "packet":
        chosen = answer_in_packets(known, chosen)
    wrapper = functools.wraps(found)(chosen)
    setattr(wrapper, MARK, known)
    return cast("F", wrapper)


def _advice(owner: str, given: object) -> str:
    if inspect.isclass(given):
        return "; decorate the methods of the class instead"
    if not isinstance(given, str):
        return ""
    example = "@tool(name=" if owner == "tool" else "wrap(function, name="
    return f"; to name a tool, write {example}{given!r})"


def _choose(known: Tool, policy: Policy | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper for what a function is, and for whether it has a policy."""
    kind = body_of(function)
    if inspect.isgeneratorfunction(kind) or inspect.isasyncgenfunction(kind):
        _check_no_cache(known, policy)
        check_stream(known.info.name, policy or Policy())
    if inspect.isgeneratorfunction(kind):
        _check_stream(known, policy)
        _check_sync(known, policy)
        return stream_sync(known)
    if inspect.isasyncgenfunction(kind):
        return stream_async(known)
    is_async = inspect.iscoroutinefunction(kind)
    if policy is not None and policy.cache is not None:
        return _choose_cached(known, policy, policy.cache, function, is_async=is_async)
    if policy is None:
        return observe_async(known, function) if is_async else observe_sync(known, function)
    if is_async:
        return guard_async(known, policy, function)
    _check_sync(known, policy)
    return guard_sync(known, policy, function)


def _choose_cached(
    known: Tool, policy: Policy, cache: Cache, function: Callable[..., Any], *, is_async: bool
) -> Callable[..., Any]:
    from fuseboard.calls.caching import cached_async, cached_sync  # few tools have a cache

    if is_async:
        return cached_async(known, policy, cache, function)
    _check_sync(known, policy)
    return cached_sync(known, policy, cache, function)


def body_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a callable object runs; a partial is understood by ``inspect`` itself."""
    if inspect.isroutine(function) or isinstance(function, functools.partial):
        return function
    return type(function).__call__


def _check_stream(known: Tool, policy: Policy | None) -> None:
    if policy is not None and policy.timeout is not None:
        raise ConfigurationError(
            f"Policy(timeout={policy.timeout!r}) for {known.info.name!r}: a synchronous generator "
            "can't be interrupted; give its client a timeout, or make it an async generator"
        )


def _check_no_cache(known: Tool, policy: Policy | None) -> None:
    if policy is not None and policy.cache is not None:
        raise ConfigurationError(
            f"Policy(cache=...) for {known.info.name!r}: a stream can't be served twice; cache a "
            "function that returns a list"
        )


def _check_sync(known: Tool, policy: Policy | None) -> None:
    check_sync(known.info.name, policy or Policy())
    for fallback in policy.fallbacks if policy else ():
        function = fallback.function
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigurationError(
                f"Fallback(function={fallback.function!r}) for {known.info.name!r}: an async "
                "fallback needs an async tool"
            )
