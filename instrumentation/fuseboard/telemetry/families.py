"""The metrics that are counted per tool and region: names, labels, and series born at zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fuseboard import conventions as c
from fuseboard.conventions import NO_ERROR, AttemptResult, ErrorClass, RetryEnd

Labels = tuple[str, ...]
"""Values of a metric's labels beyond ``tool`` and ``region``."""


class Family(NamedTuple):
    """One metric.

    Attributes:
        name: With its ``_total``, if it is a counter.
        words: Its help text.
        labels: Names of all its labels.
    """

    name: str
    words: str
    labels: Labels


def _family(name: str, words: str, *labels: str) -> Family:
    return Family(name, words, ("tool", "region", *labels))


CALLS: Final = _family(c.METRIC_CALLS, "Tool calls that ended.", "outcome", "error_class")
CALL_SECONDS: Final = _family(
    c.METRIC_CALL_DURATION, "Duration of tool calls in seconds, back-off included."
)
ATTEMPTED: Final = _family(
    c.METRIC_ATTEMPTED_CALLS,
    "Tool calls that made at least one attempt.",
    "first_attempt",
    "retry",
)
ATTEMPTS: Final = _family(c.METRIC_ATTEMPTS, "Physical attempts at tools.", "result", "error_class")
ATTEMPT_SECONDS: Final = _family(
    c.METRIC_ATTEMPT_DURATION, "Duration of single attempts in seconds."
)
BACKOFF: Final = _family(c.METRIC_BACKOFF, "Seconds that calls waited between attempts.")
ACTIONS: Final = _family(
    c.METRIC_LAYER_ACTIONS, "What the layers around tools did.", "layer", "action"
)
COSTS: Final = _family(c.METRIC_COST, "Cost that tools reported.", "wasted")

ZERO_SERIES: Final[Mapping[Family, tuple[Labels, ...]]] = {
    CALLS: tuple((outcome.value, cls) for outcome, cls in c.legal_outcome_classes()),
    ATTEMPTED: (
        (AttemptResult.SUCCESS.value, RetryEnd.NONE.value),
        *((AttemptResult.FAILURE.value, end.value) for end in RetryEnd),
    ),
    ATTEMPTS: (
        (AttemptResult.SUCCESS.value, NO_ERROR),
        # Cut short: cancelled, left or interrupted before it could succeed or fail.
        (AttemptResult.FAILURE.value, NO_ERROR),
        *((AttemptResult.FAILURE.value, cls.value) for cls in ErrorClass),
    ),
    BACKOFF: ((),),
    ACTIONS: c.LAYER_ACTIONS,
    COSTS: (),
}
"""Series that exist from a tool's registration; no call makes a pair that is not here, costs
apart."""
