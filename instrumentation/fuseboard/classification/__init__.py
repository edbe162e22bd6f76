"""What kind of fault a call met: a chain of classifiers, one file per family."""

from fuseboard.classification.chain import judge_exception, judge_result
from fuseboard.classification.reflection import reflection_hint
from fuseboard.classification.results import (
    CONTRACT,
    EMPTY,
    ResultFinding,
    describe_empty,
    is_empty,
)
from fuseboard.classification.user import classifier
from fuseboard.classification.validation import BINDING

__all__ = [
    "BINDING",
    "CONTRACT",
    "EMPTY",
    "ResultFinding",
    "classifier",
    "describe_empty",
    "is_empty",
    "judge_exception",
    "judge_result",
    "reflection_hint",
]
