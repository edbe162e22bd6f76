"""Macros and parameters of queries, as each engine writes them."""

from __future__ import annotations

import re

import pytest

from fuseboard_collector.store import named_queries
from fuseboard_collector.store.dialects import CLICKHOUSE, DUCKDB, Dialect, MacroError
from fuseboard_collector.store.dialects.dialect import parameter_types

PLAIN = Dialect("Plain", {"twice": "{0} + {0}", "pair": "[{0}|{1}]"}, {"BIGINT": "<{name}>"})


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ("@twice(a)", "a + a"),
        ("@pair(f(a, b), 'x, y)')", "[f(a, b)|'x, y)']"),
        ("@pair(@pair(a, b), @twice(c))", "[[a|b]|c + c]"),
        ('@pair("odd, name", [1, 2])', '["odd, name"|[1, 2]]'),
        ("@twice($n::BIGINT)", "<n> + <n>"),
        ("$n::BIGINT + 1, $t::VARCHAR[]", "<n> + 1, $t::VARCHAR[]"),
        ("-- twice, write to a@b.example", "-- twice, write to a@b.example"),
    ],
)
def test_rendering(written: str, rendered: str) -> None:
    assert PLAIN.render(written) == rendered


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("@thrice(a)", "no macro @thrice.*pair.*twice"),
        ("@pair(a)", "@pair takes 2 arguments, not 1"),
        ("@twice((a)", "not closed"),
        ("$n::DECIMAL", "can't be DECIMAL"),
    ],
)
def test_what_can_not_be_rendered_is_named(written: str, message: str) -> None:
    with pytest.raises(MacroError, match=message):
        PLAIN.render(written)


def test_both_engines_know_the_same_macros() -> None:
    assert DUCKDB.macros.keys() == CLICKHOUSE.macros.keys()


@pytest.mark.parametrize("name", named_queries.names())
@pytest.mark.parametrize("dialect", [DUCKDB, CLICKHOUSE], ids=lambda dialect: dialect.name)
def test_every_query_can_be_rendered_for_every_engine(dialect: Dialect, name: str) -> None:
    sql = re.sub("--[^\n]*", "", named_queries.text(name, dialect=dialect))
    assert "@" not in sql
    assert dialect is DUCKDB or "$" not in sql


@pytest.mark.parametrize("name", named_queries.names())
def test_a_parameter_has_one_type(name: str) -> None:
    sql = re.sub("--[^\n]*", "", named_queries.source(name))
    found = set(re.findall(r"\$(\w+)::((?:VARCHAR|DOUBLE)\[\]|[A-Z]+)", sql))
    assert dict(found) == parameter_types(sql)
    assert len(found) == len(dict(found))


def test_every_macro_is_used() -> None:
    every = "\n".join(
        named_queries.source(name, folder)
        for folder in ("queries", "writes")
        for name in named_queries.names(folder)
    )
    assert [name for name in DUCKDB.macros if f"@{name}(" not in every] == []
