"""What to serve instead."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from fuseboard.conventions import Confidence, Effects, ErrorClass, ResultSource
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import check_bool, check_choices, set_enum
from fuseboard.record import TOOL_MARK, ToolInfo


class _NoValue:
    """Stands for a fallback value that was not given, since None is a value."""

    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE: Final = _NoValue()


@dataclass(frozen=True, slots=True)
class Fallback:
    """Something to serve instead when the live call failed or was rejected.

    Attributes:
        function: Called with the tool's own arguments; async only for an async tool.
        value: A static value instead; dicts, lists and sets are copied for each call.
        name: What the record says was served; default the name of the tool or function.
        source: ``fallback``, ``cache`` or ``default``; default ``fallback`` for a function,
            ``default`` for a value.
        confidence: How far to trust it, at most: a fuseboard tool may say less of its own answer.
            Default ``medium`` for a function, ``low`` for a value and for a hand-over.
        on: The classes of fault that it is served for; default all but ``L1_input``, which the
            caller has to correct.
        effects: What calling the function does to the world; default what the policy of a
            fuseboard tool says, ``none`` for any other function. One that is ``unsafe`` (sends
            the same mail by another provider, say) is passed over when the live call may have
            taken effect although it failed.
        hand_over: Whether the function hands the matter to a person. It is then counted as such
            and served whatever it returns, validated or not; only an error is not.

    Since 0.1.
    """

    function: Callable[..., Any] | None = None
    value: Any = NO_VALUE
    name: str | None = None
    source: ResultSource | None = None
    confidence: Confidence | None = None
    on: Collection[ErrorClass] = tuple(c for c in ErrorClass if c is not ErrorClass.L1_INPUT)
    effects: Effects | Literal["none", "idempotent", "unsafe"] | None = None
    hand_over: bool = False

    def __post_init__(self) -> None:
        has_value = self.value is not NO_VALUE
        if self.function is None and not has_value:
            raise ConfigurationError("Fallback(): must be given a function, or value=...")
        if self.function is not None and has_value:
            raise ConfigurationError(
                f"Fallback(function={self.function!r}, value={self.value!r}): must be given only "
                "one of them"
            )
        if self.function is not None and not callable(self.function):
            raise ConfigurationError(
                f"Fallback(function={self.function!r}): must be callable; for a static value "
                "write Fallback(value=...)"
            )
        policy = getattr(_tool_of(self.function), "policy", None)
        set_enum(self, "effects", Effects, policy.effects if policy is not None else Effects.NONE)
        check_bool("Fallback", "hand_over", self.hand_over)
        if self.hand_over and has_value:
            raise ConfigurationError(
                f"Fallback(value={self.value!r}, hand_over=True): must be given the function that "
                "hands over"
            )
        default_source = ResultSource.DEFAULT if has_value else ResultSource.FALLBACK
        set_enum(self, "source", ResultSource, default_source)
        if self.source is ResultSource.LIVE:
            raise ConfigurationError("Fallback(source='live'): a fallback is never live")
        is_sure = not has_value and not self.hand_over
        default_confidence = Confidence.MEDIUM if is_sure else Confidence.LOW
        set_enum(self, "confidence", Confidence, default_confidence)
        check_choices("Fallback", "on", self.on, list(ErrorClass))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise ConfigurationError(f"Fallback(name={self.name!r}): must be a text, or None")
        if self.name is None:
            object.__setattr__(self, "name", _name_of(self.function))

    @property
    def tool(self) -> ToolInfo | None:
        """What is fixed about the fuseboard tool that is called, if it is one."""
        info: ToolInfo | None = getattr(_tool_of(self.function), "info", None)
        return info


def _tool_of(function: object) -> Any:
    """Return what is known of a fuseboard tool; None for any other function."""
    return getattr(_unwrapped(function), TOOL_MARK, None)


def _name_of(function: object) -> str:
    """Return the name of a fuseboard tool, or of what else a fallback calls."""
    if function is None:
        return "default"
    inner = _unwrapped(function)
    info = getattr(_tool_of(function), "info", None)
    name = info.name if info is not None else getattr(inner, "__name__", None)
    return str(name or type(inner).__name__)


def _unwrapped(function: object) -> object:
    return function.func if isinstance(function, partial) else function
