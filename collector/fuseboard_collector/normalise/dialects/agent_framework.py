"""Microsoft's Agent Framework, AutoGen and Semantic Kernel: GenAI conventions.

Semantic Kernel puts the name of the plugin before that of the function.
"""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import genai

DIALECT = replace(genai.DIALECT, name="agent_framework")
SEMANTIC_KERNEL = replace(genai.DIALECT, name="semantic_kernel", server_separator="-")
