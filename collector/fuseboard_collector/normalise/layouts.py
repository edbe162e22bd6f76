"""What the names of a span's attributes tell by themselves; spans of one kind have the same."""

from __future__ import annotations

from dataclasses import dataclass

from fuseboard import conventions as c
from fuseboard_collector.normalise.contents import Held, held_by
from fuseboard_collector.normalise.dialects.recognising import Marks, marks_among
from fuseboard_collector.normalise.hints import HintNames, hint_names
from fuseboard_collector.normalise.incoming import Attributes

_MAX_LAYOUTS = 4096
_MAX_LENGTH = 4096
# Of a call's span these have columns; the table of other spans has fewer.
_PROMOTED = frozenset(
    {
        c.GEN_AI_OPERATION_NAME, c.GEN_AI_TOOL_NAME, c.GEN_AI_TOOL_CALL_ID, c.GEN_AI_AGENT_NAME,
        c.GEN_AI_CONVERSATION_ID, c.ERROR_TYPE, c.HTTP_RESPONSE_STATUS_CODE, c.CLOUD_REGION,
        "session.id", "tool.name", "openinference.span.kind", "traceloop.span.kind",
        "traceloop.entity.name", "ai.toolCall.name", "ai.toolCall.id", "mlflow.spanFunctionName",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """Which attributes of a span say what.

    Attributes:
        marks: May say that it is a call of a tool.
        facts: Are stored.
        unpromoted: Those of them that have no column in the row of a call.
        counts: Are stored if they are numbers.
    """

    marks: Marks
    hints: HintNames
    facts: tuple[str, ...]
    unpromoted: tuple[str, ...]
    counts: tuple[str, ...]

    def kept_of(self, attributes: Attributes) -> tuple[str, ...]:
        """Return the names of the attributes to store of a span that is no call."""
        return self.facts + self._counts(attributes) if self.counts else self.facts

    def kept_of_call(self, attributes: Attributes) -> tuple[str, ...]:
        """Return the names of the attributes to store of a call."""
        return self.unpromoted + self._counts(attributes) if self.counts else self.unpromoted

    def _counts(self, attributes: Attributes) -> tuple[str, ...]:
        return tuple(name for name in self.counts if isinstance(attributes[name], int | float))


_known: dict[tuple[str, ...], Layout] = {}


def layout_of(attributes: Attributes) -> Layout:
    """Return which of a span's attributes say what. Remembered: working it out takes 30 µs.

    Args:
        attributes: The span's.
    """
    names = tuple(attributes)
    found = _known.get(names)
    if found is None:
        found = _layout(names)
        if sum(map(len, names)) <= _MAX_LENGTH:
            if len(_known) >= _MAX_LAYOUTS:
                _known.clear()
            _known[names] = found
    return found


def _layout(names: tuple[str, ...]) -> Layout:
    held = {name: held_by(name) for name in names}
    facts = tuple(name for name in names if held[name] is Held.FACT)
    return Layout(
        marks=marks_among(names),
        hints=hint_names(names),
        facts=facts,
        unpromoted=tuple(name for name in facts if name not in _PROMOTED),
        counts=tuple(name for name in names if held[name] is Held.CONTENT_OR_COUNT),
    )
