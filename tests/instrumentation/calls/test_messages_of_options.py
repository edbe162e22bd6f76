"""A wrong option is refused in the name of the function that it was given to."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import fuseboard
from fuseboard import ConfigurationError
from fuseboard.calls.wrapping import ToolOptions

# Untyped, since a type checker would refuse most of this.
tool: Any = fuseboard.tool
wrap: Any = fuseboard.wrap
call: Any = fuseboard.call
FUNCTION = "must be a function or a method"


def search(query: str, *words: str, now: float = 0.0) -> str:
    return query


class Kitchen:
    def cook(self, dish: str) -> str:
        return dish


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tool("search"), f"tool('search'): {FUNCTION}; to name a tool, write @tool(name="),
        (lambda: wrap("x"), f"wrap('x'): {FUNCTION}; to name a tool, write wrap(function, "),
        (lambda: tool(5), f"tool(5): {FUNCTION}"),
        (lambda: wrap(Kitchen), "wrap(<class '"),
        (lambda: wrap(search, name=""), "wrap(name=''): must be a text of 1 to 128"),
        (lambda: wrap(lambda: 1), "wrap(<lambda>): a lambda has no name"),
        (lambda: tool(name="")(search), "tool(name=''): must be a text of 1 to 128"),
        (lambda: wrap(search, region=5), "wrap(region=5): must be a text"),
        (lambda: wrap(search, policy=5), "wrap(policy=5): must be a fuseboard.Policy"),
        (lambda: wrap(search, typ=5), "wrap(): unknown option 'typ'"),
        (lambda: call(""), "call(name=''): must be a text of 1 to 128"),
        (lambda: call("x", "y"), "call(args='y'): must be a mapping by name"),
        (lambda: call("x", region=5), "call(region=5): must be a text"),
        (lambda: call("x", region=[]), "call(region=[]): must be a text"),
        (lambda: call("x", type={}), "call(type={}): must be one of"),
        (lambda: call("x", ignore_arguments="q"), "call(ignore_arguments='q'): must be"),
    ],
)  # fmt: skip
def test_the_message_names_what_was_called(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match="^" + re.escape(message)):
        make()


def test_a_class_is_advised_to_decorate_its_methods() -> None:
    with pytest.raises(ConfigurationError, match="decorate the methods of the class instead"):
        tool(Kitchen)


def test_an_ignored_argument_must_be_one() -> None:
    with pytest.raises(ConfigurationError) as caught:
        wrap(search, ignore_arguments=["query", "nope"])
    assert str(caught.value) == (
        "wrap(ignore_arguments=['nope']): the function has no such parameter; it has "
        "query, words, now"
    )
    with pytest.raises(ConfigurationError, match="it has none"):
        tool(ignore_arguments={"nope"})(_nothing)


def _nothing() -> None:
    pass


async def _found_later(arguments: object) -> str:
    return str(arguments)


@pytest.mark.parametrize("option", ["region", "upstream"])
def test_what_finds_a_place_is_no_async_function(option: Any) -> None:
    options: Any = {option: _found_later}
    with pytest.raises(ConfigurationError, match=rf"^wrap\({option}=.*nobody awaits it"):
        wrap(search, **options)


def test_every_argument_that_can_be_may_be_ignored(telemetry: Any) -> None:
    def anything(**arguments: Any) -> None:
        pass

    wrap(search, ignore_arguments=["now", "words"])
    wrap(anything, ignore_arguments=["whatever"])
    wrap(Kitchen.cook, ignore_arguments=["dish"])
    wrap(functools.partial(search, now=1.0), ignore_arguments=["now"])
    wrap(staticmethod(search), ignore_arguments=["now"])
    wrap(dict.fromkeys, ignore_arguments=["iterable"])
    call("x", ignore_arguments=["whatever"])


def test_help_of_tool_describes_every_option() -> None:
    described = inspect.getdoc(fuseboard.tool) or ""
    for option in ToolOptions.__annotations__:
        assert re.search(rf"^    {option}: \S", described, flags=re.MULTILINE), option
    for function in (fuseboard.tool, fuseboard.wrap):
        for name in re.findall(r":(?:func|class):`(?:fuseboard\.)?(\w+)`", function.__doc__ or ""):
            assert name in fuseboard.__all__
