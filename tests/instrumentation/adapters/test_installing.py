"""Wrapping functions of a framework and leaving it as it was, on a framework made for the test."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from fuseboard.adapters.installing import Installation, Target
from fuseboard.errors import ConfigurationError


@pytest.fixture
def framework() -> Iterator[Any]:
    module: Any = types.ModuleType("made_up_framework")

    class Base:
        def run(self, value: int) -> int:
            """Run."""
            return value

        async def arun(self, value: int) -> int:
            return value

        @classmethod
        def make(cls, value: int) -> tuple[type, int]:
            return cls, value

        @staticmethod
        def plain(value: int) -> int:
            return value

    class Derived(Base):
        pass

    module.Base, module.Derived = Base, Derived
    module.function = lambda value: value
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def _negated(original: Any, *args: Any) -> Any:
    result = original(*args)
    return (result[0], -result[1]) if isinstance(result, tuple) else -result


async def _negated_async(original: Any, *args: Any) -> Any:
    return -await original(*args)


def _target(path: str, replacement: Any = _negated) -> Target:
    return Target("made_up_framework", path, replacement)


@pytest.mark.parametrize("owner", ["Base", "Derived"])
async def test_methods_of_all_kinds_are_wrapped_and_restored(framework: Any, owner: str) -> None:
    cls = getattr(framework, owner)
    before = dict(vars(cls))
    installation = Installation("instrument_it")
    installation.install(
        [
            _target(f"{owner}.run"),
            _target(f"{owner}.arun", _negated_async),
            _target(f"{owner}.make"),
            _target(f"{owner}.plain"),
            _target("function"),
        ]
    )
    assert (cls().run(1), await cls().arun(1), cls.plain(1)) == (-1, -1, -1)
    assert (cls.make(1), framework.function(1)) == ((cls, -1), -1)
    assert cls.run.__doc__ == "Run."
    installation.remove()
    assert dict(vars(cls)) == before
    assert (cls().run(1), await cls().arun(1), cls.make(1)) == (1, 1, (cls, 1))
    assert framework.function(1) == 1


def test_a_second_installation_wraps_nothing_again(framework: Any) -> None:
    installation = Installation("instrument_it")
    installation.install([_target("Base.run")])
    wrapped = vars(framework.Base)["run"]
    installation.install([_target("Base.run")])
    assert vars(framework.Base)["run"] is wrapped
    assert framework.Base().run(1) == -1
    installation.remove()
    assert framework.Base().run(1) == 1


def test_a_wrapper_on_top_keeps_its_place(framework: Any) -> None:
    installation = Installation("instrument_it")
    original = vars(framework.Base)["run"]
    installation.install([_target("Base.run")])
    ours = vars(framework.Base)["run"]

    @functools.wraps(ours)
    def theirs(self: Any, value: int) -> int:
        return int(ours(self, value)) * 10

    framework.Base.run = theirs
    installation.remove()
    assert vars(framework.Base)["run"] is theirs
    assert framework.Base().run(1) == 10
    installation.install([_target("Base.run")])
    assert framework.Base().run(1) == -10
    framework.Base.run = ours  # they go away, to what they found
    installation.remove()
    assert vars(framework.Base)["run"] is original


def test_a_wrapper_that_hides_ours_does_not_make_it_act_twice(framework: Any) -> None:
    installation = Installation("instrument_it")
    installation.install([_target("Base.run")])
    ours = vars(framework.Base)["run"]

    def theirs(self: Any, value: int) -> int:  # says nothing of what it wraps
        return int(ours(self, value)) * 10

    framework.Base.run = theirs
    installation.install([_target("Base.run")])
    assert framework.Base().run(1) == -10
    installation.remove()
    assert vars(framework.Base)["run"] is theirs
    assert framework.Base().run(1) == 10


def test_a_framework_that_was_reset_behind_our_back_is_wrapped_anew(framework: Any) -> None:
    installation = Installation("instrument_it")
    original = vars(framework.Base)["run"]
    installation.install([_target("Base.run")])
    framework.Base.run = original
    installation.install([_target("Base.run")])
    assert framework.Base().run(1) == -1
    installation.remove()
    assert vars(framework.Base)["run"] is original


def test_a_function_that_is_missing_is_named_and_nothing_is_wrapped(framework: Any) -> None:
    installation = Installation("instrument_it")
    with pytest.raises(
        ConfigurationError, match=r"instrument_it\(\).*made_up_framework\.Base\.walk"
    ):
        installation.install([_target("Base.run"), _target("Base.walk")])
    assert framework.Base().run(1) == 1
    with pytest.raises(ConfigurationError, match=r"no_such_framework\.run"):
        installation.install([Target("no_such_framework", "run", _negated)])


def test_what_is_met_later_is_wrapped_while_the_adapter_is_installed(framework: Any) -> None:
    installation = Installation("instrument_it")
    installation.add(framework.Base, "run", _negated)
    assert framework.Base().run(1) == 1
    installation.install([])
    installation.add(framework.Base, "run", _negated)
    assert framework.Base().run(1) == -1
    installation.remove()
    assert framework.Base().run(1) == 1
