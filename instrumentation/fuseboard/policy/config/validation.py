"""What an answer must satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from fuseboard.policy.config.checks import check_bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What an answer must satisfy to be of use.

    A refused answer is a fault of class ``L5_semantic``; if no fallback stands in for it, the
    caller gets :class:`fuseboard.InvalidResultError`.

    Attributes:
        non_empty: Whether None, blank text, an empty container or a stream without items is an
            unusable answer.

    Since 0.1.
    """

    non_empty: bool = False

    def __post_init__(self) -> None:
        check_bool("Validation", "non_empty", self.non_empty)
