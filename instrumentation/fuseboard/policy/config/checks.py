"""Checks that the settings share: each names the owner, the argument, its value and the range."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from enum import StrEnum
from typing import Final

from fuseboard.errors import ConfigurationError

MAX_SECONDS: Final = 1e9
"""About 32 years; a bound because no clock can wait for 1e300 s."""


def check_number(owner: str, name: str, value: object, low: float, high: float) -> None:
    """Refuse what is no number from ``low`` to ``high``."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:  # type: ignore[operator]
        raise ConfigurationError(
            f"{owner}({name}={value!r}): must be a number from {low:g} to {high:g}"
        )


def check_positive(owner: str, name: str, value: object, *, is_optional: bool = True) -> None:
    """Refuse what is no number of seconds above 0."""
    if value is None and is_optional:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_SECONDS:  # type: ignore[operator]
        suffix = ", or None" if is_optional else ""
        raise ConfigurationError(
            f"{owner}({name}={value!r}): must be a number of seconds above 0{suffix}, "
            f"at most {MAX_SECONDS:g}"
        )


def check_int(owner: str, name: str, value: object, low: int, high: int) -> None:
    """Refuse what is no int from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigurationError(f"{owner}({name}={value!r}): must be an int from {low} to {high}")


def check_choice(owner: str, name: str, value: object, choices: Collection[str]) -> None:
    """Refuse what is none of ``choices``."""
    if value not in choices:
        shown = ", ".join(repr(str(choice)) for choice in choices)
        raise ConfigurationError(f"{owner}({name}={value!r}): must be one of {shown}")


def check_choices(owner: str, name: str, values: object, choices: Collection[str]) -> None:
    """Refuse what is no collection of some of ``choices``."""
    # A text is a collection as well: of its letters.
    if isinstance(values, str) or not isinstance(values, Collection):
        raise ConfigurationError(
            f"{owner}({name}={values!r}): must be a collection, such as a list"
        )
    for value in values:
        check_choice(owner, name, value, choices)


def check_plain(owner: str, name: str, value: object, what: str = "a function") -> None:
    """Refuse what is no function, and what would have to be awaited; None is left out."""
    if value is None:
        return
    if not callable(value):
        raise ConfigurationError(f"{owner}({name}={value!r}): must be {what}, or None")
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        raise ConfigurationError(
            f"{owner}({name}={value!r}): must be {what}, and no async one, since nobody awaits it"
        )


def check_bool(owner: str, name: str, value: object) -> None:
    """Refuse what is no bool."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{owner}({name}={value!r}): must be a bool")


def set_enum(owner: object, name: str, enum: type[StrEnum], default: object = None) -> None:
    """Make a field of a frozen ``owner`` a member of ``enum``; None becomes ``default``."""
    value = getattr(owner, name)
    if value is None:
        value = default
    check_choice(type(owner).__name__, name, value, list(enum))
    object.__setattr__(owner, name, enum(value))
