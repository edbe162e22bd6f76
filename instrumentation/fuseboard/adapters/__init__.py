"""Adapters: record and guard the tool calls of a framework without touching the tools.

One file per framework; each is imported only when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuseboard.adapters.langchain import instrument_langchain, uninstrument_langchain
    from fuseboard.adapters.pydantic_ai import instrument_pydantic_ai, uninstrument_pydantic_ai

__all__ = [
    "instrument_langchain",
    "instrument_pydantic_ai",
    "uninstrument_langchain",
    "uninstrument_pydantic_ai",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    framework = name.removeprefix("un").removeprefix("instrument_")
    return getattr(import_module(f"{__name__}.{framework}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
