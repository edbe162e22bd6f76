"""What an answer must satisfy, made into checks once, when the policy is written.

A check returns what is wrong with a value. One that raises is a fault of whoever wrote it: it is
logged once and the value passes, since a broken check says nothing about the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from fuseboard import guard
from fuseboard.classification.problems import bounded, of_jsonschema, problems_in
from fuseboard.errors import ConfigurationError, Problem

Check = Callable[[object], tuple[Problem, ...]]

_REFUSED: Final = Problem("", "is refused by the predicate")


def first_problems(checks: tuple[Check, ...], value: object) -> tuple[Problem, ...]:
    """Return what the first check that objects has against a value; never raises."""
    for check in checks:
        try:
            problems = check(value)
        except Exception as fault:
            guard.swallow("validating a result", fault)
            continue
        if problems:
            return problems
    return ()


def by_predicate(predicate: Callable[[Any], bool | str | None]) -> Check:
    """Make a check of a function that tells whether a value is good, or says what is wrong."""

    def check(value: object) -> tuple[Problem, ...]:
        answer = predicate(value)
        if isinstance(answer, str):
            return bounded([Problem("", answer)]) if answer else ()
        # None is what a function returns that forgot to return: it decides nothing.
        return () if answer is None or answer else (_REFUSED,)

    return check


def by_model(model: Any) -> Check:
    """Make a check of a pydantic model, or of any type that pydantic understands.

    Raises:
        ConfigurationError: If pydantic is missing, or does not understand the type.
    """
    try:
        from pydantic import TypeAdapter, ValidationError
    except ImportError as error:
        raise _missing("model", "pydantic", model) from error
    try:
        validate = TypeAdapter(model).validate_python
    except Exception as error:
        raise ConfigurationError(
            f"Validation(model={model!r}): must be a type that pydantic understands "
            f"({str(error).partition(chr(10))[0]})"
        ) from error

    def check(value: object) -> tuple[Problem, ...]:
        # Validating would use up what can be read only once.
        if isinstance(value, Iterator):
            return ()
        try:
            validate(value)
        except ValidationError as error:
            return problems_in(error) or (Problem("", "does not fit the model"),)
        return ()

    return check


def by_schema(schema: Mapping[str, Any]) -> Check:
    """Make a check of a JSON Schema; references are only followed within it.

    Raises:
        ConfigurationError: If jsonschema is missing, or the schema is not valid itself.
    """
    try:
        validators: Any = import_module("jsonschema.validators")
        specifications: Any = import_module("jsonschema_specifications")
    except ImportError as error:
        raise _missing("schema", "jsonschema", schema) from error
    if not isinstance(schema, Mapping):
        raise ConfigurationError(f"Validation(schema={schema!r}): must be a dict, a JSON Schema")
    validator = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        validator.check_schema(schema)
    except Exception as error:
        raise ConfigurationError(
            f"Validation(schema=...): is no valid JSON Schema ({getattr(error, 'message', error)})"
        ) from error
    # With a registry of its own, so that no reference is fetched from the network.
    find = validator(schema, registry=specifications.REGISTRY).iter_errors

    def check(value: object) -> tuple[Problem, ...]:
        return of_jsonschema(find(value))

    return check


def _missing(option: str, package: str, value: object) -> ConfigurationError:
    return ConfigurationError(
        f"Validation({option}={value!r}): needs the package {package!r}; install it with "
        f"pip install {package}"
    )
