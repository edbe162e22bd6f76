"""Adapters: record and guard the tool calls of a framework without touching the tools.

One file per framework; each is imported only when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuseboard.adapters.crewai import instrument_crewai, uninstrument_crewai
    from fuseboard.adapters.fastmcp import instrument_fastmcp, uninstrument_fastmcp
    from fuseboard.adapters.google_adk import instrument_google_adk, uninstrument_google_adk
    from fuseboard.adapters.langchain import instrument_langchain, uninstrument_langchain
    from fuseboard.adapters.llama_index import instrument_llama_index, uninstrument_llama_index
    from fuseboard.adapters.mcp import instrument_mcp, uninstrument_mcp
    from fuseboard.adapters.openai_agents import (
        instrument_openai_agents,
        uninstrument_openai_agents,
    )
    from fuseboard.adapters.pybreaker import instrument_pybreaker, uninstrument_pybreaker
    from fuseboard.adapters.pydantic_ai import instrument_pydantic_ai, uninstrument_pydantic_ai
    from fuseboard.adapters.smolagents import instrument_smolagents, uninstrument_smolagents
    from fuseboard.adapters.stamina import instrument_stamina, uninstrument_stamina
    from fuseboard.adapters.tenacity import instrument_tenacity, uninstrument_tenacity

__all__ = [
    "instrument_crewai",
    "instrument_fastmcp",
    "instrument_google_adk",
    "instrument_langchain",
    "instrument_llama_index",
    "instrument_mcp",
    "instrument_openai_agents",
    "instrument_pybreaker",
    "instrument_pydantic_ai",
    "instrument_smolagents",
    "instrument_stamina",
    "instrument_tenacity",
    "uninstrument_crewai",
    "uninstrument_fastmcp",
    "uninstrument_google_adk",
    "uninstrument_langchain",
    "uninstrument_llama_index",
    "uninstrument_mcp",
    "uninstrument_openai_agents",
    "uninstrument_pybreaker",
    "uninstrument_pydantic_ai",
    "uninstrument_smolagents",
    "uninstrument_stamina",
    "uninstrument_tenacity",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    framework = name.removeprefix("un").removeprefix("instrument_")
    return getattr(import_module(f"{__name__}.{framework}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
