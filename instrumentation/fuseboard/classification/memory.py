"""Remember verdicts on exceptions of which the type says all.

Most failing calls raise the same few exceptions, and for a plain one (a built-in type, or a
subclass that adds nothing; nothing stored on it, raised from nothing) every question of the
chain has the same answer each time.
"""

from __future__ import annotations

from typing import Final

from fuseboard.classification.inspecting import (
    explicit_cause,
    first_argument,
    implicit_context,
    is_a,
    mro_of,
    names_of,
    qualified_name,
    stored_in,
)
from fuseboard.conventions import Outcome
from fuseboard.record import Verdict

Key = tuple[type, int | None]
Judged = tuple[Verdict | Outcome, str]
"""A verdict, and the qualified name of the exception's class."""

_MAX_REMEMBERED: Final = 1024
# What every class statement makes; a class with no more adds nothing.
_EMPTY_CLASS: Final = frozenset(
    {
        "__module__",
        "__qualname__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__firstlineno__",
        "__static_attributes__",
    }
)
# Their meaning lies in what they hold, or in who raised them.
_TELLING: Final = (SystemExit, UnicodeError, FileNotFoundError)
# The reply that it is made of begins with a code.
_TELLING_NAME: Final = "redis.exceptions.ResponseError"


class Memory:
    """Verdicts by type and error number."""

    def __init__(self) -> None:
        self._plain_types: dict[type, bool] = {}
        self._judged: dict[Key, Judged] = {}

    def key_of(self, error: BaseException, ambient: BaseException | None) -> Key | None:
        """Return what decides about an exception, or None if more than its type does."""
        cls = type(error)
        is_plain = self._plain_types.get(cls)
        if is_plain is None:
            is_plain = self._look_at(cls)
        if not is_plain or stored_in(error) or explicit_cause(error) is not None:
            return None
        context = implicit_context(error)
        if context is not None and context is not ambient:
            return None
        argument = first_argument(error)
        if isinstance(error, OSError) and error.errno is not None:
            argument = error.errno
        if type(argument) is int:
            return cls, argument
        return None if is_a(argument, BaseException) else (cls, None)

    def recall(self, key: Key) -> Judged | None:
        """Return what was found before."""
        return self._judged.get(key)

    def remember(self, key: Key, verdict: Verdict | Outcome) -> Judged:
        """Keep what was found, and return it with the name of the class."""
        if len(self._judged) >= _MAX_REMEMBERED:
            self._judged.clear()
        judged = self._judged[key] = (verdict, qualified_name(key[0]))
        return judged

    def _look_at(self, cls: type) -> bool:
        is_plain = _is_plain(cls)
        # Classes may be made at run time without end.
        if len(self._plain_types) >= _MAX_REMEMBERED:
            self._plain_types.clear()
        self._plain_types[cls] = is_plain
        return is_plain


def _is_plain(cls: type) -> bool:
    if type(cls) is not type or issubclass(cls, (BaseExceptionGroup, *_TELLING)):
        return False
    if _TELLING_NAME in names_of(cls):
        return False
    return all(
        base.__module__ == "builtins" or _EMPTY_CLASS.issuperset(vars(base)) for base in mro_of(cls)
    )
