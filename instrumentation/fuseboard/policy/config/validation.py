"""What an answer must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from fuseboard.policy.config.checks import check_bool, check_plain
from fuseboard.policy.contract import Check, by_model, by_predicate, by_schema


# Without slots, so that the checks can be kept beside the settings and are no setting.
@dataclass(frozen=True, kw_only=True)
class Validation:
    """What an answer must satisfy to be of use; all that is given must hold.

    A refused answer is a fault of class ``L5_semantic``; if no fallback stands in for it, the
    caller gets :class:`fuseboard.InvalidResultError`. An answer is looked at and never changed:
    the caller gets the tool's own object, not what a model makes of it. Fallbacks must satisfy
    the same.

    Attributes:
        non_empty: Whether None, blank text, an empty container or a stream without items is an
            unusable answer.
        predicate: A function of the value: True if it is good; False, or a text that says what
            is wrong (without the value), if not. One that raises or returns None decides
            nothing.
        model: A pydantic model, or any type that ``pydantic.TypeAdapter`` takes. Needs the
            package ``pydantic``.
        schema: A JSON Schema, for values as ``json.loads`` returns them. Needs the package
            ``jsonschema``.

    Since 0.1.
    """

    non_empty: bool = False
    predicate: Callable[[Any], bool | str | None] | None = None
    model: type[Any] | Any | None = None
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_bool("Validation", "non_empty", self.non_empty)
        check_plain("Validation", "predicate", self.predicate, "a function of the value")
        _ = self.checks  # made now, so that a mistake shows where it is

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """The checks beyond ``non_empty``, cheapest to explain first: schema, model, predicate."""
        found = []
        if self.schema is not None:
            found.append(by_schema(self.schema))
        if self.model is not None:
            found.append(by_model(self.model))
        if self.predicate is not None:
            found.append(by_predicate(self.predicate))
        return tuple(found)

    def __getstate__(self) -> dict[str, Any]:
        # Without the checks, which can't be pickled and are made again when they are needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}
