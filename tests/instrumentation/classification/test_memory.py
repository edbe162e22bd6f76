"""Verdicts are remembered only where an exception's type says all."""

from __future__ import annotations

import errno
from typing import Any

import pytest

import fuseboard
from fuseboard import ErrorClass
from fuseboard.classification import chain, judge_exception
from fuseboard.classification.memory import Memory


class BareError(ConnectionError):
    """Adds nothing."""


class WithStatusError(Exception):
    """Says more than its type where a property computes it."""

    @property
    def status_code(self) -> int:
        return int(self.args[0])


class Meta(type):
    """Makes classes that may answer anything."""


class MadeByMetaError(Exception, metaclass=Meta):
    pass


class ResponseError(Exception):
    """The Redis client's in releases before 8, where the code is a word of its text."""

    __module__, __qualname__ = "redis.exceptions", "ResponseError"


def with_attribute() -> Exception:
    error = RuntimeError("x")
    error.status_code = 429  # type: ignore[attr-defined]
    return error


def from_another() -> Exception:
    error = RuntimeError("x")
    error.__cause__ = TimeoutError()
    return error


def while_handling_another() -> Exception:
    error = RuntimeError("x")
    error.__context__ = TimeoutError()
    return error


PLAIN = [
    ConnectionResetError("x"), TimeoutError(), KeyError("k"), ValueError("v"), BareError("x"),
    OSError(errno.ENOSPC, "full"), OSError(errno.EHOSTUNREACH, "far"), OSError("words"),
    PermissionError(errno.EACCES, "no"), NotImplementedError(), RecursionError(),
]  # fmt: skip
TELLING = [
    with_attribute(), from_another(), while_handling_another(), WithStatusError(503),
    WithStatusError(404), MadeByMetaError(), SystemExit(3), FileNotFoundError(errno.ENOENT, "no"),
    ResponseError("BUSY Redis is busy"), ResponseError("WRONGTYPE no list"),
    UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
    ExceptionGroup("g", [TimeoutError()]), RuntimeError(ConnectionRefusedError()),
]  # fmt: skip


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    fresh = Memory()
    monkeypatch.setattr(chain, "_MEMORY", fresh)
    return fresh


@pytest.mark.parametrize("error", [*PLAIN, *TELLING], ids=repr)
def test_memory_changes_no_verdict(
    error: BaseException, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = judge_exception(error, 0.0)
    second = judge_exception(error, 0.0)
    monkeypatch.setattr(Memory, "key_of", lambda *_: None)
    assert first == second == judge_exception(error, 0.0)


@pytest.mark.parametrize("error", PLAIN, ids=repr)
def test_plain_exceptions_are_remembered(error: BaseException, memory: Memory) -> None:
    judge_exception(error, 0.0)
    key = memory.key_of(error, None)
    assert key is not None
    assert memory.recall(key) is not None


@pytest.mark.parametrize("error", TELLING, ids=repr)
def test_exceptions_that_say_more_are_asked_each_time(error: BaseException, memory: Memory) -> None:
    assert memory.key_of(error, None) is None


def test_what_the_caller_was_handling_does_not_count(memory: Memory) -> None:
    ambient = TimeoutError()
    error = ValueError("x")
    error.__context__ = ambient
    assert memory.key_of(error, ambient) is not None
    assert memory.key_of(error, None) is None


def test_error_numbers_stay_apart(memory: Memory) -> None:
    full = judge_exception(OSError(errno.ENOSPC, "x"), 0.0)
    far = judge_exception(OSError(errno.ENETUNREACH, "x"), 0.0)
    late = OSError("x")
    late.errno = errno.ENOSPC
    assert full.verdict.error_class is ErrorClass.L4_PERSISTENT  # type: ignore[union-attr]
    assert far.verdict.error_class is ErrorClass.L3_TRANSIENT  # type: ignore[union-attr]
    assert judge_exception(late, 0.0).verdict == full.verdict  # type: ignore[union-attr]


def test_messages_are_never_remembered(memory: Memory) -> None:
    first: Any = judge_exception(ValueError("one"), 0.0)
    second: Any = judge_exception(ValueError("two"), 0.0)
    assert (first.message, second.message) == ("one", "two")


def test_a_classifier_of_the_user_comes_before_the_memory(memory: Memory) -> None:
    judge_exception(ValueError("x"), 0.0)

    @fuseboard.classifier
    def by_word(error: BaseException) -> ErrorClass | None:
        return ErrorClass.L2_ACCESS if "quota" in str(error) else None

    found: Any = judge_exception(ValueError("quota"), 0.0)
    assert found.verdict.error_class is ErrorClass.L2_ACCESS
    other: Any = judge_exception(ValueError("x"), 0.0)
    assert other.verdict.error_class is ErrorClass.UNCLASSIFIED


def test_the_memory_is_bounded(memory: Memory) -> None:
    for number in range(3000):
        made = type(f"Made{number}", (ValueError,), {})
        judge_exception(made(number), 0.0)
    assert len(memory._judged) <= 1024
    assert len(memory._plain_types) <= 1024
