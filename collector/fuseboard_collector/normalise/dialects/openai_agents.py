"""OpenAI Agents SDK under OpenInference: a hand-over to another agent looks like a tool."""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import openinference

DIALECT = replace(openinference.DIALECT, name="openai_agents", no_calls=(("", "handoff to "),))
