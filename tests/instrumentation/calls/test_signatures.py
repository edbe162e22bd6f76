"""HC-14 and HC-16: nobody can tell a tool from the function it was made of."""

from __future__ import annotations

import contextlib
import functools
import inspect
import pickle
import typing
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pydantic
import pytest

import fuseboard
from fuseboard import ConfigurationError, Policy, Retry
from fuseboard.runtime import RUNTIME


class RunnableConfig:
    """Stands for a parameter that a framework injects by annotation."""


def plain(
    kind: Literal["a"] | None = None,
    /,
    *rest: int,
    config: RunnableConfig | None = None,
    **more: str,
) -> dict[str, int]:
    """Do something."""
    return {"rest": len(rest)}


async def coroutine(city: str = "Oslo") -> str:
    """Await something."""
    return city


def generator(n: int) -> Iterator[int]:
    """Yield something."""
    yield from range(n)


async def async_generator(n: int) -> AsyncIterator[int]:
    """Yield something later."""
    for i in range(n):
        yield i


FUNCTIONS = [plain, coroutine, generator, async_generator]
WRAPPED = pytest.mark.parametrize("policy", [None, Policy(retry=Retry())])


@WRAPPED
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_hc_14_introspection_is_the_same(function: Any, policy: Policy | None) -> None:
    tool = fuseboard.wrap(function, policy=policy)
    assert inspect.signature(tool) == inspect.signature(function)
    assert typing.get_type_hints(tool) == typing.get_type_hints(function)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(tool, name) == getattr(function, name)
    for ask in (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
        inspect.isfunction,
    ):
        assert ask(tool) == ask(function), ask.__name__


def test_hc_14_schema_that_a_framework_builds_is_the_same() -> None:
    tool = fuseboard.wrap(coroutine)
    assert pydantic.TypeAdapter(tool).json_schema() == pydantic.TypeAdapter(coroutine).json_schema()


def test_tool_pickles_by_name() -> None:
    assert pickle.loads(pickle.dumps(module_tool)) is module_tool


@contextlib.contextmanager
def registered_for_this_module_only() -> Iterator[None]:
    """Keep the tools below out of the process's register, which other tests look at."""
    kept = dict(RUNTIME._tools)
    yield
    RUNTIME._tools.clear()
    RUNTIME._tools.update(kept)


with registered_for_this_module_only():

    @fuseboard.tool
    def module_tool() -> int:
        return 1


@pytest.fixture(autouse=True)
def _module_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    # pytest's importlib mode names modules by path; pickle looks them up by that name.
    module = types.ModuleType(__name__)
    module.__dict__.update(globals())
    monkeypatch.setitem(sys.modules, __name__, module)


with registered_for_this_module_only():

    class Kitchen:
        """Every kind of method, with either order of decorators."""

        @fuseboard.tool
        def instance(self, a: int) -> tuple[str, int]:
            return type(self).__name__, a

        @fuseboard.tool
        @staticmethod
        def static_above(a: int) -> tuple[str, int]:
            return "static", a

        @staticmethod
        @fuseboard.tool
        def static_below(a: int) -> tuple[str, int]:
            return "static", a

        @fuseboard.tool
        @classmethod
        def class_above(cls, a: int) -> tuple[str, int]:
            return cls.__name__, a

        @classmethod
        @fuseboard.tool
        def class_below(cls, a: int) -> tuple[str, int]:
            return cls.__name__, a

        @fuseboard.tool
        async def asynchronous(self, a: int) -> tuple[str, int]:
            return type(self).__name__, a


class Annex(Kitchen):
    pass


METHODS = ["instance", "static_above", "static_below", "class_above", "class_below"]


@pytest.mark.parametrize("owner", [Kitchen(), Annex(), Kitchen, Annex])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("by_keyword", [True, False])
def test_hc_16_methods_bind_as_before(
    telemetry: Any, owner: Any, name: str, by_keyword: bool
) -> None:
    if name == "instance" and inspect.isclass(owner):
        bound = functools.partial(getattr(owner, name), owner())
    else:
        bound = getattr(owner, name)
    who, a = bound(a=7) if by_keyword else bound(7)
    cls = owner if inspect.isclass(owner) else type(owner)
    assert (who, a) == ("static" if "static" in name else cls.__name__, 7)
    assert telemetry.last.tool.name == name


async def test_hc_16_async_method(telemetry: Any) -> None:
    assert await Annex().asynchronous(3) == ("Annex", 3)


def test_hc_16_receiver_is_no_argument(telemetry: Any) -> None:
    Kitchen().instance(1)
    Annex().instance(1)
    Kitchen.class_above(1)
    Kitchen.class_below(1)
    Kitchen.static_above(1)
    Kitchen.static_below(a=1)
    hashes = {call.args_hash for call in telemetry.calls}
    assert len(hashes) == 1, "the same arguments hash alike, whoever receives them"


def test_bound_method_and_callable_object_and_partial(telemetry: Any) -> None:
    class Search:
        def __call__(self, q: str) -> str:
            return q.upper()

    assert fuseboard.wrap("abc".upper, name="upper")() == "ABC"
    assert fuseboard.wrap(Search())("x") == "X"
    assert fuseboard.wrap(functools.partial(plain, "a"))(1, 2) == {"rest": 2}
    assert [call.tool.name for call in telemetry.calls] == ["upper", "Search", "plain"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fuseboard.tool(name=""), "name=''"),
        (lambda: fuseboard.tool(name="x" * 200), "1 to 128"),
        (lambda: fuseboard.tool(type="gadget"), "gadget"),
        (lambda: fuseboard.tool(policy=Retry()), "must be a fuseboard.Policy"),
        (lambda: fuseboard.tool(region=7), "region=7"),
        (lambda: fuseboard.tool(upstream=""), "upstream=''"),
        (lambda: fuseboard.tool(regions="us-east"), "regions='us-east'"),
        (lambda: fuseboard.tool(regions=7), "regions=7"),
        (lambda: fuseboard.tool(regions=["a", 7]), "collection of texts"),
        (lambda: fuseboard.tool(ignore_arguments=7), "ignore_arguments=7"),
        (lambda: fuseboard.tool(hash_arguments="no"), "must be a bool"),
        (lambda: fuseboard.tool(retries=3), "unknown option 'retries'"),
    ],
)
def test_wrong_options_are_refused_with_words(make: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()(plain)


@pytest.mark.parametrize("thing", [Kitchen, 7, property(plain), module_tool])
def test_what_is_no_function_is_refused(thing: Any) -> None:
    with pytest.raises(ConfigurationError, match="tool\\("):
        fuseboard.tool(thing)


def test_lambda_needs_a_name() -> None:
    with pytest.raises(ConfigurationError, match="name="):
        fuseboard.wrap(lambda: 1)
    assert fuseboard.wrap(lambda: 1, name="one")() == 1
