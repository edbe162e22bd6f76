"""Exceptions that are no faults: cancellation, leaving, and the control flow of frameworks."""

from __future__ import annotations

import asyncio

from fuseboard.classification.groups import leaves_of
from fuseboard.classification.inspecting import is_a, names_of, probe
from fuseboard.conventions import Outcome

INTERRUPTS = frozenset(
    {
        "fuseboard.errors.AskUserError",
        # LangGraph: pause for a human, hand over to another node.
        "langgraph.errors.GraphBubbleUp",
        "langgraph.errors.GraphInterrupt",
        "langgraph.errors.NodeInterrupt",
        "langgraph.errors.ParentCommand",
        # Pydantic AI: ask the model again, defer the call, ask for approval.
        "pydantic_ai.exceptions.ModelRetry",
        "pydantic_ai.exceptions.CallDeferred",
        "pydantic_ai.exceptions.ApprovalRequired",
        # Others: wait for a person or for an event.
        "crewai.flow.async_feedback.types.HumanFeedbackPending",
        "llama_index.core.workflow.errors.WaitingForEvent",
        "workflows.runtime.types.results.WaitingForEvent",
        "prefect.exceptions.PrefectSignal",
        "mcp.shared.exceptions.UrlElicitationRequiredError",
    }
)
"""Qualified names of control-flow exceptions; subclasses are found over the MRO."""

_CANCELLATIONS = frozenset({"asyncio.exceptions.CancelledError", "trio.Cancelled"})


def control_flow_outcome(error: BaseException) -> Outcome | None:
    """Return the outcome of an exception that is no fault, or None for a fault.

    Args:
        error: What the tool raised. A group counts by its leaves: all cancelled means
            ``cancelled``; an interrupt with nothing but cancellation beside it means
            ``interrupted``.

    Returns:
        ``ok`` for ``SystemExit(0)``, ``cancelled``, ``abandoned``, ``interrupted`` or None.
    """
    outcomes = {_outcome_of_leaf(leaf) for leaf in leaves_of(error)}
    if len(outcomes) > 1:
        outcomes.discard(Outcome.CANCELLED)
    return outcomes.pop() if len(outcomes) == 1 else None


def is_cancellation(error: BaseException) -> bool:
    """Tell whether an exception is the noise that cancelling a task makes."""
    return is_a(error, asyncio.CancelledError) or not _CANCELLATIONS.isdisjoint(
        names_of(type(error))
    )


def _outcome_of_leaf(error: BaseException) -> Outcome | None:
    if is_cancellation(error) or is_a(error, KeyboardInterrupt):
        return Outcome.CANCELLED
    if is_a(error, GeneratorExit):
        return Outcome.ABANDONED
    if is_a(error, SystemExit):
        return Outcome.OK if _exits_cleanly(error) else None
    if not INTERRUPTS.isdisjoint(names_of(type(error))):
        return Outcome.INTERRUPTED
    return None


def _exits_cleanly(error: BaseException) -> bool:
    code = probe(error, "code")
    return code is None or (isinstance(code, int) and code == 0)
