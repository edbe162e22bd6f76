"""Strands Agents: GenAI conventions, arguments and results in span events by default."""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import genai

DIALECT = replace(genai.DIALECT, name="strands")
