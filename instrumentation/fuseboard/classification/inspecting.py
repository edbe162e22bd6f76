"""Look at exceptions and results that may be hostile: nothing here raises or has effects.

An exception may override ``__str__``, ``__class__``, ``__cause__`` or ``__getattribute__`` with
code that raises. So classes come from ``type()``, chains from the slots of ``BaseException``,
and every other attribute through :func:`probe`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType

MAX_MESSAGE = 4096
"""Characters of a message that are kept for the redactor, which keeps fewer."""

_cause_of = BaseException.__dict__["__cause__"].__get__
_context_of = BaseException.__dict__["__context__"].__get__
_suppresses_context = BaseException.__dict__["__suppress_context__"].__get__
_args_of = BaseException.__dict__["args"].__get__
_traceback_of = BaseException.__dict__["__traceback__"].__get__

_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 8
_short.maxstring = _short.maxother = 256

# Their own __str__ is written in C over small arguments and adds what the bare arguments lack.
_PLAIN_TEXT = (str, int, float, bool, type(None))
_BUILTIN_CONTAINERS = (list, tuple, dict, set, frozenset, bytes, bytearray)


def probe(value: object, name: str) -> object:
    """Return an attribute, or None where there is none or looking at it fails."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def stored_in(value: object) -> dict[str, object]:
    """Return what an object holds in its own dictionary; runs none of its code."""
    try:
        stored = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return stored if type(stored) is dict else {}


def is_a(value: object, *classes: type) -> bool:
    """Tell whether the true class of ``value``, not what it claims, is one of ``classes``."""
    return issubclass(type(value), classes)


def names_of(cls: type) -> frozenset[str]:
    """Return the qualified names of a class and its bases, builtins bare."""
    return _names_of(cls)


def qualified_name(cls: type) -> str:
    """Return ``module.qualname`` of a class, builtins bare."""
    try:
        module, name = cls.__module__, cls.__qualname__
    except Exception:
        return "unknown"
    return str(name) if module == "builtins" else f"{module}.{name}"


def _list_names(cls: type) -> frozenset[str]:
    return frozenset(qualified_name(base) for base in mro_of(cls))


# Cached, because every failing call asks for them; bounded, because classes may be made at run
# time without end.
_names_of: Callable[[type], frozenset[str]] = lru_cache(maxsize=2048)(_list_names)


def mro_of(cls: type) -> tuple[type, ...]:
    """Return a class and its bases, whatever its metaclass says."""
    return tuple(type.__dict__["__mro__"].__get__(cls))


def explicit_cause(error: BaseException) -> BaseException | None:
    """Return what the exception was raised ``from``."""
    cause = _cause_of(error)
    return cause if isinstance(cause, BaseException) else None


def implicit_context(error: BaseException) -> BaseException | None:
    """Return what was being handled when the exception was raised, unless suppressed."""
    context = None if _suppresses_context(error) else _context_of(error)
    return context if isinstance(context, BaseException) else None


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return where the exception was raised, if it was."""
    trace = _traceback_of(error)
    return trace if isinstance(trace, TracebackType) else None


def first_argument(error: BaseException) -> object:
    """Return the first of the exception's arguments, or None."""
    arguments = _args_of(error)
    return arguments[0] if arguments else None


def message_of(error: BaseException) -> str:
    """Return the text of an exception, cheaply and at any price without raising.

    Returns:
        At most ``MAX_MESSAGE`` characters, not redacted. An exception with huge arguments is
        shown by an excerpt, one whose ``__str__`` raises by a placeholder.
    """
    try:
        if type(error).__str__ is BaseException.__str__:
            return _text_of_arguments(_args_of(error))[:MAX_MESSAGE]
        return str(error)[:MAX_MESSAGE]
    except Exception:
        return f"<{type(error).__name__} without readable text>"


def _text_of_arguments(arguments: tuple[object, ...]) -> str:
    if len(arguments) == 1:
        return _text_of_argument(arguments[0])
    return _short.repr(arguments) if arguments else ""


def _text_of_argument(argument: object) -> str:
    if type(argument) in _PLAIN_TEXT:
        return str(argument)
    if type(argument) in _BUILTIN_CONTAINERS:
        return _short.repr(argument)
    return str(argument)
