"""CrewAI through OpenInference's event listener: a span per attempt, numbered."""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import openinference

DIALECT = replace(
    openinference.DIALECT,
    name="crewai",
    attempt=(("tool.run_attempts",),),
)
