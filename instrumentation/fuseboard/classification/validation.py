"""Requests that a schema or a signature refuses."""

from __future__ import annotations

from typing import Final

from fuseboard.classification.naming import Named
from fuseboard.classification.verdicts import input_fault, persistent_fault
from fuseboard.record import Verdict

SCHEMA: Final = input_fault("schema_validation_matcher")
BINDING: Final = input_fault("argument_binding_matcher")
"""The verdict on a ``TypeError`` because the arguments do not fit the tool's signature."""

_NAMED: Final = Named(
    {
        **dict.fromkeys(
            (
                "pydantic_core._pydantic_core.ValidationError",
                "pydantic.error_wrappers.ValidationError",
                "pydantic.v1.error_wrappers.ValidationError",
                "jsonschema.exceptions.ValidationError",
                "marshmallow.exceptions.ValidationError",
                "msgspec.ValidationError",
                "fastmcp.exceptions.ValidationError",
                "voluptuous.error.Invalid",
                "cattrs.errors.BaseValidationError",
            ),
            SCHEMA,
        ),
        # The schema itself is none.
        "jsonschema.exceptions.SchemaError": persistent_fault("schema_matcher"),
    }
)


def classify_validation(error: BaseException) -> Verdict | None:
    """Judge an exception of a validating library, by qualified name; else return None."""
    return _NAMED.of(type(error))
