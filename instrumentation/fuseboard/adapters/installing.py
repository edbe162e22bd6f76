"""Put wrappers around a framework's own functions, and take them away again.

One table of targets drives both. A wrapper that somebody else has wrapped in the meantime can't
be taken out without taking theirs out as well: it is switched off instead, so that calls pass
through it unchanged, and switched on again by the next installation.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, Final

from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child

Replacement = Callable[..., Any]
"""Called as ``replacement(original, *args, **kwargs)``; of the same kind (sync or async)."""

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Target:
    """A function of a framework and what is called in its place.

    Attributes:
        module: The module, for example ``langchain_core.tools.base``.
        path: Where it is in the module, for example ``BaseTool.run``.
        replacement: What is called, with the original first.
    """

    module: str
    path: str
    replacement: Replacement


class Patch:
    """One wrapper in its place."""

    def __init__(self, owner: Any, name: str, replacement: Replacement) -> None:
        """Put the wrapper in its place."""
        self.is_on = True
        self._owner = owner
        self._name = name
        self._kept = vars(owner).get(name, _ABSENT)
        raw = inspect.getattr_static(owner, name)
        self._wrapper = _rewrap(raw, self._wrap(_function_of(raw, owner), replacement))
        setattr(owner, name, self._wrapper)

    def is_in_place(self) -> bool:
        """Tell whether calls pass through the wrapper first, and it is on."""
        return self.is_on and vars(self._owner).get(self._name) is self._wrapper

    def turn_on(self) -> bool:
        """Switch a wrapper on that is still in its place; return whether it is."""
        current = vars(self._owner).get(self._name, _ABSENT)
        while current is not _ABSENT and current is not None:
            if current is self._wrapper:
                self.is_on = True
                return True
            current = getattr(current, "__wrapped__", None)
        return False

    def take_away(self) -> bool:
        """Restore the original; return False where another wrapper lies on top."""
        self.is_on = False
        if vars(self._owner).get(self._name) is not self._wrapper:
            return False
        if self._kept is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._kept)
        return True

    def _wrap(self, original: Callable[..., Any], replacement: Replacement) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(original):

            @functools.wraps(original)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                if self.is_on:
                    return await replacement(original, *args, **kwargs)
                return await original(*args, **kwargs)

            return call_async

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_on:
                return replacement(original, *args, **kwargs)
            return original(*args, **kwargs)

        return call


class Installation:
    """What one adapter has wrapped.

    Args:
        owner: The installing function, for messages.
    """

    def __init__(self, owner: str) -> None:
        self.is_installed = False
        self._owner = owner
        self._patches: dict[tuple[int, str], Patch] = {}
        self.renew_lock()
        after_fork_in_child(self.renew_lock)

    def renew_lock(self) -> None:
        """Make a new lock, as a forked child must."""
        self._lock = threading.RLock()

    def install(self, targets: Iterable[Target]) -> None:
        """Wrap all targets; those that are wrapped already stay as they are.

        Raises:
            ConfigurationError: If the framework has no such function; nothing is wrapped then.
        """
        with self._lock:
            # Before the first of them is touched.
            found = [(_find(self._owner, target), target) for target in targets]
            for (owner, name), target in found:
                self._add(owner, name, target.replacement)
            self.is_installed = True

    def add(self, owner: Any, name: str, replacement: Replacement) -> None:
        """Wrap one function that was met later, for example a method of a subclass."""
        patch = self._patches.get((id(owner), name))
        if patch is not None and patch.is_in_place():
            return  # as with every call but the first
        with self._lock:
            if self.is_installed:
                self._add(owner, name, replacement)

    def remove(self) -> None:
        """Restore the originals; wrappers with another on top are switched off."""
        with self._lock:
            self.is_installed = False
            for key, patch in list(self._patches.items()):
                if patch.take_away():
                    del self._patches[key]

    def _add(self, owner: Any, name: str, replacement: Replacement) -> None:
        key = (id(owner), name)  # the patch keeps the owner, so its id stays its own
        patch = self._patches.get(key)
        if patch is not None and not patch.turn_on():
            # Out of sight, maybe within somebody's wrapper: it must not act there as well.
            patch.is_on = False
            patch = None
        if patch is None:
            self._patches[key] = Patch(owner, name, replacement)


def _find(owner: str, target: Target) -> tuple[Any, str]:
    """Return the object that holds a target's function, and under which name."""
    holder: Any
    *path, name = target.path.split(".")
    try:
        holder = import_module(target.module)
        for part in path:
            holder = getattr(holder, part)
        getattr(holder, name)
    except (ImportError, AttributeError) as missing:
        raise ConfigurationError(
            f"{owner}() found no {target.module}.{target.path}: the installed release is not "
            f"one that this adapter knows ({missing})"
        ) from missing
    return holder, name


def _function_of(raw: Any, owner: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = raw.__func__ if isinstance(raw, staticmethod | classmethod) else raw
    if inspect.isclass(owner) and found is raw and type(raw) is not FunctionType:
        return _binding(found)
    return found


def _binding(method: Any) -> Callable[..., Any]:
    """Return a function that calls what stands for a method as the class would: bound.

    Other instrumentation puts objects in the place of methods, which know their instance only
    from having been bound to it.
    """
    if not hasattr(type(method), "__get__"):
        found: Callable[..., Any] = method
        return found
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def call_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            return await method.__get__(self, type(self))(*args, **kwargs)

        return call_async

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method.__get__(self, type(self))(*args, **kwargs)

    return call


def _rewrap(raw: Any, wrapper: Callable[..., Any]) -> Any:
    """Return a wrapper of the same kind of method as the original."""
    return type(raw)(wrapper) if isinstance(raw, staticmethod | classmethod) else wrapper
