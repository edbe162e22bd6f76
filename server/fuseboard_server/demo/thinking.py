"""What the demo agent's model would say of itself: spans of the agent and of each of its thoughts.

There is no language model. Its time is drawn by lot; its tokens are counted as a model's would be,
from all that the conversation has come to so far, so that a context which grows does grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace

from fuseboard import conventions as c
from fuseboard_server.demo.model import Model

AGENT: Final = "trip-planner"
BOOKER: Final = "booker"
"""Books what the planner found."""
MODEL_NAME: Final = "demo-model"
CHARACTERS_PER_TOKEN: Final = 4
INSTRUCTIONS_TOKENS: Final = 850
"""What every conversation begins with: instructions, and what the tools are."""
THOUGHT_SECONDS: Final = 0.15
THOUGHT_TOKENS: Final = 60

_OPERATION: Final = c.GEN_AI_OPERATION_NAME
_MODEL: Final = "gen_ai.request.model"
_INPUT: Final = "gen_ai.usage.input_tokens"
_OUTPUT: Final = "gen_ai.usage.output_tokens"


class Conversation:
    """One traveller's conversation.

    Args:
        session: Its id.
        model: Draws by lot how long a thought takes.
    """

    def __init__(self, session: str, model: Model) -> None:
        self.session = session
        self._model = model
        self._tokens = INSTRUCTIONS_TOKENS

    @contextmanager
    def agent(self, name: str) -> Iterator[None]:
        """Put a span of an agent around what it does."""
        attributes = {
            _OPERATION: "invoke_agent",
            c.GEN_AI_AGENT_NAME: name,
            c.GEN_AI_CONVERSATION_ID: self.session,
        }
        with _tracer().start_as_current_span(f"invoke_agent {name}", attributes=attributes):
            yield

    def read(self, result: object) -> None:
        """Add what a tool answered to what the model reads from now on."""
        self._tokens += THOUGHT_TOKENS + len(str(result)) // CHARACTERS_PER_TOKEN

    async def think(self) -> None:
        """Take the time of one thought, and leave the span of a model's call."""
        attributes: dict[str, str | int] = {
            _OPERATION: "chat",
            _MODEL: MODEL_NAME,
            c.GEN_AI_CONVERSATION_ID: self.session,
            _INPUT: self._tokens,
            _OUTPUT: THOUGHT_TOKENS,
        }
        with _tracer().start_as_current_span(f"chat {MODEL_NAME}", attributes=attributes):
            await asyncio.sleep(self._model.real_pause(THOUGHT_SECONDS))


def _tracer() -> trace.Tracer:
    return trace.get_tracer("fuseboard_server.demo")
