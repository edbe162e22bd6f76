"""What exactly is wrong with a value, as path and reason, from the errors of validating libraries.

Never the value itself: it may be a secret, and the model has it anyway. Reasons come from the
schema; what a library mixes into its messages from the value is cut off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, get_args

from fuseboard.classification.inspecting import names_of, probe
from fuseboard.errors import Problem

MAX_PROBLEMS: Final = 8
MAX_TEXT: Final = 120

_PYDANTIC: Final = frozenset(
    {
        "pydantic_core._pydantic_core.ValidationError",
        "pydantic.error_wrappers.ValidationError",
        "pydantic.v1.error_wrappers.ValidationError",
    }
)
_JSONSCHEMA: Final = "jsonschema.exceptions.ValidationError"
# Parts of pydantic's messages that are made of the value.
_TELLING: Final = ("error", "encoding_error", "tag", "tz_actual")
_IN_WORDS: Final = {
    "missing": "is missing",
    "missing_argument": "is missing",
    "missing_keyword_only_argument": "is missing",
    "missing_positional_only_argument": "is missing",
    "value_error.missing": "is missing",
    "extra_forbidden": "is not known",
    "unexpected_keyword_argument": "is not known",
    "unexpected_positional_argument": "is one argument too many",
    "value_error": "is refused by a check of its own",
    "assertion_error": "is refused by a check of its own",
    "union_tag_invalid": "has a tag that is not known",
    "model_type": "should be an object with named fields",
    "model_attributes_type": "should be an object with named fields",
    "dataclass_type": "should be an object with named fields",
    "is_instance_of": "is not of the right kind",
    "is_subclass_of": "is not of the right kind",
}
_OF_SCHEMA: Final = {
    "type": "is not of type",
    "enum": "is none of",
    "const": "is not",
    "minimum": "is below",
    "exclusiveMinimum": "is not above",
    "maximum": "is above",
    "exclusiveMaximum": "is not below",
    "minLength": "is shorter than",
    "maxLength": "is longer than",
    "minItems": "has fewer items than",
    "maxItems": "has more items than",
    "pattern": "does not match",
    "format": "is not of the format",
    "multipleOf": "is not a multiple of",
}
_IN_GENERAL: Final = {
    "additionalProperties": "has properties that are not allowed",
    "unevaluatedProperties": "has properties that are not allowed",
    "uniqueItems": "has items that are equal",
    "anyOf": "matches none of the alternatives",
    "oneOf": "does not match exactly one of the alternatives",
    "not": "matches what it must not",
}


def problems_in(error: BaseException) -> tuple[Problem, ...]:
    """Return what a validating library found, at most ``MAX_PROBLEMS``; nothing for other errors.

    Never raises.
    """
    names = names_of(type(error))
    try:
        if not _PYDANTIC.isdisjoint(names):
            return bounded(_of_pydantic(error))
        if _JSONSCHEMA in names:
            return of_jsonschema([error])
    except Exception:  # noqa: S110 - a foreign library that is not as expected says nothing
        pass
    return ()


def of_jsonschema(errors: Iterable[Any]) -> tuple[Problem, ...]:
    """Return what jsonschema's errors say, without the value that they quote."""
    return bounded(
        Problem(path_of(error.absolute_path), _reason_of_keyword(error)) for error in errors
    )


def bounded(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the first problems, each once, their texts cut to ``MAX_TEXT``."""
    found: dict[Problem, None] = {}
    for problem in problems:
        found[Problem(_cut(problem.path), _cut(problem.reason))] = None
        if len(found) >= MAX_PROBLEMS:
            break
    return tuple(found)


def in_words(problems: Iterable[Problem]) -> str:
    """Return problems as one line."""
    return "; ".join(map(str, problems))


def path_of(parts: Iterable[object]) -> str:
    """Return ``items[2].price`` for the parts ``items``, 2 and ``price``."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else str(part)
    return path


def _of_pydantic(error: Any) -> Iterable[Problem]:
    try:
        found = error.errors(include_url=False, include_input=False)
    except TypeError:  # before version 2
        found = error.errors()
    for one in found:
        yield Problem(path_of(one.get("loc", ())), _reason_of_pydantic(one))


def _reason_of_pydantic(one: Mapping[str, Any]) -> str:
    kind = str(one.get("type", ""))
    if kind in _IN_WORDS:
        return _IN_WORDS[kind]
    if kind not in _known_kinds():
        return f"is refused ({kind})"  # of somebody's own, whose message may quote the value
    message, context = str(one.get("msg", "")), one.get("ctx") or {}
    for name in _TELLING:
        telling = str(context.get(name, ""))
        if telling:
            message = message.partition(telling)[0].rstrip(" ,:'`")
    return message


@lru_cache(maxsize=1)
def _known_kinds() -> frozenset[str]:
    """Return the kinds of error that pydantic itself raises; it is imported already."""
    schema = sys.modules.get("pydantic_core.core_schema")
    return frozenset(get_args(getattr(schema, "ErrorType", None)))


def _reason_of_keyword(error: Any) -> str:
    keyword, wanted = str(error.validator), error.validator_value
    if keyword == "required":
        instance = error.instance
        lacking = [name for name in wanted if name not in instance]
        return f"lacks {', '.join(map(str, lacking))}"
    if keyword in _IN_GENERAL:
        return _IN_GENERAL[keyword]
    if keyword in _OF_SCHEMA:
        return f"{_OF_SCHEMA[keyword]} {_short(wanted)}"
    return f"does not satisfy {keyword!r}"


def _short(wanted: object) -> str:
    if isinstance(wanted, list | tuple):
        return ", ".join(str(one) for one in wanted[:10])
    return str(wanted)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def notes_of(error: BaseException) -> tuple[Problem, ...]:
    """Return the problems that an exception of ours carries, or those of a library's."""
    own = probe(error, "problems")
    if isinstance(own, tuple) and own and all(isinstance(one, Problem) for one in own):
        return own
    return problems_in(error)
