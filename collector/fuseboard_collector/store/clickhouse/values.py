"""Values of a query's parameters, as ClickHouse takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from fuseboard_collector.errors import QueryParameterError
from fuseboard_collector.store.dialects.dialect import parameter_types

_INT64 = range(-(2**63), 2**63)


def encoded(name: str, sql: str, bound: Mapping[str, object]) -> dict[str, object]:
    """Return the values of a query's parameters, checked against their types.

    Args:
        name: The query, for messages.
        sql: Its text before it was put into a dialect.
        bound: What ``NamedQuery.bind`` returned.

    Raises:
        QueryParameterError: If a value is not of its parameter's type.
    """
    values = {}
    for parameter, kind in parameter_types(sql).items():
        given = bound[parameter]
        try:
            values[parameter] = _CODERS[kind](given) if given is not None else _NULLS.get(kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise QueryParameterError(
                f"query {name!r}: ${parameter} can't be {str(given)[:80]!r}; it is {_NAMES[kind]}"
            ) from error
    return values


def _time(value: object) -> str:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(_text(value))
    return moment.isoformat(sep=" ", timespec="microseconds")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # a lone surrogate is no text that can be sent
    return value


def _texts(value: object) -> list[str]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise TypeError
    # A null item means no restriction, and no row has null anyway.
    return [_text(item) for item in value if item is not None]


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    number = int(value)
    if number not in _INT64:
        raise OverflowError
    return number


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return float(value)


def _numbers(value: object) -> list[float]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return [_number(item) for item in value]


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


_CODERS: dict[str, Callable[[object], object]] = {
    "TIMESTAMP": _time,
    "VARCHAR": _text,
    "VARCHAR[]": _texts,
    "BIGINT": _integer,
    "DOUBLE": _number,
    "DOUBLE[]": _numbers,
    "BOOLEAN": _flag,
}
_NULLS: dict[str, object] = {"VARCHAR[]": [None], "DOUBLE[]": [None]}
_NAMES = {
    "TIMESTAMP": "a time",
    "VARCHAR": "a text",
    "VARCHAR[]": "a list of texts",
    "BIGINT": "a whole number",
    "DOUBLE": "a number",
    "DOUBLE[]": "a list of numbers",
    "BOOLEAN": "true or false",
}
