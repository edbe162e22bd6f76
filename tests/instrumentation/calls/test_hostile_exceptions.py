"""HC-21: an exception that fights back reaches the caller as it is and is recorded all the same."""

# ruff: noqa: N818 - what matters of these is their misbehaviour
from __future__ import annotations

from typing import Any, NoReturn

import pytest

import fuseboard
from fuseboard import ErrorClass, Outcome, Policy, Retry


def explode(*args: object) -> NoReturn:
    raise RuntimeError("instrumentation must not come here")


class BadStr(Exception):
    __str__ = explode
    __repr__ = explode


class BadClass(Exception):
    __class__ = property(explode)  # type: ignore[assignment]


class BadAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        explode()


class Recursive(Exception):
    def __getattr__(self, name: str) -> Any:
        return getattr(self, name + "_")


class BadCause(Exception):
    __cause__ = property(explode)  # type: ignore[assignment]
    __context__ = property(explode)  # type: ignore[assignment]
    args = property(explode)  # type: ignore[assignment]
    response = property(explode)
    code = property(explode)


class BadMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__qualname__", "__name__"):
            explode()
        return super().__getattribute__(name)


class BadType(Exception, metaclass=BadMeta):
    pass


class UnhashableMeta(type):
    __hash__ = None  # type: ignore[assignment]


class UnhashableType(Exception, metaclass=UnhashableMeta):
    pass


class LyingCode(Exception):
    code = explode
    details = explode


class SurrogateText(Exception):
    def __str__(self) -> str:
        return "half an emoji \ud83e"


HOSTILE = [
    BadStr, BadClass, BadAttributes, Recursive, BadCause, BadType, UnhashableType, LyingCode,
    SurrogateText,
]  # fmt: skip
GUARDS = pytest.mark.parametrize(
    "policy", [None, Policy(retry=Retry(wait_initial=0), effects="none"), Policy(timeout=30)]
)


@GUARDS
@pytest.mark.parametrize("cls", HOSTILE, ids=lambda cls: type.__dict__["__name__"].__get__(cls))
def test_hc_21_caller_gets_the_original(
    telemetry: Any, policy: Policy | None, cls: type[Exception]
) -> None:
    error = cls("x")
    telemetry.may_fault = True  # that a classifier gives up on such a thing is no harm

    @fuseboard.tool(policy=policy)
    def hostile() -> None:
        raise error

    raised: BaseException | None = None
    try:
        hostile()
    except BaseException as caught:
        raised = caught
    assert raised is error
    call = telemetry.last
    assert call.outcome is Outcome.ERROR
    assert call.fault.verdict.error_class is ErrorClass.UNCLASSIFIED
    assert isinstance(call.fault.message, str)
    assert isinstance(call.fault.error_type, str)
    assert call.fault.error_type


@pytest.mark.parametrize("cls", HOSTILE, ids=lambda cls: type.__dict__["__name__"].__get__(cls))
async def test_hc_21_async_caller_gets_the_original(telemetry: Any, cls: type[Exception]) -> None:
    error = cls("x")
    telemetry.may_fault = True

    @fuseboard.tool
    async def hostile() -> None:
        raise error

    raised: BaseException | None = None
    try:
        await hostile()
    except BaseException as caught:
        raised = caught
    assert raised is error
    assert telemetry.last.outcome is Outcome.ERROR


def test_hc_21_placeholder_names_the_class(telemetry: Any) -> None:
    @fuseboard.tool
    def hostile() -> None:
        raise BadStr

    with pytest.raises(BadStr):
        hostile()
    assert telemetry.last.fault.message == "<BadStr without readable text>"
    assert telemetry.last.fault.error_type.endswith(".BadStr")


def test_hc_21_huge_arguments_are_shown_by_an_excerpt(telemetry: Any) -> None:
    @fuseboard.tool
    def huge() -> None:
        raise ValueError([0] * 3_000_000, "x" * 3_000_000)

    with pytest.raises(ValueError):
        huge()
    assert len(telemetry.last.fault.message) < 5000


def test_hc_21_long_text_is_bounded(telemetry: Any) -> None:
    @fuseboard.tool
    def wordy() -> None:
        raise ValueError("x" * 1_000_000)

    with pytest.raises(ValueError):
        wordy()
    assert len(telemetry.last.fault.message) <= 4096


class Spy:
    """A result that must not be looked into."""

    __getattr__ = explode
    __iter__ = explode
    __len__ = explode
    __bool__ = explode
    __eq__ = explode  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("policy", [None, Policy(validation=fuseboard.Validation(non_empty=True))])
def test_hc_21_hostile_result_passes_untouched(telemetry: Any, policy: Policy | None) -> None:
    value = Spy()

    @fuseboard.tool(policy=policy)
    def get() -> Spy:
        return value

    assert get() is value
    assert telemetry.last.outcome is Outcome.OK
