"""Raising once more keeps the context, whatever the chain looks like."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest

from fuseboard.raising import KeptContext


def raise_again(error: BaseException, ambient: BaseException | None) -> None:
    """Raise an exception while another is handled."""
    with contextlib.suppress(type(error)):
        if ambient is None:
            with KeptContext(error):
                raise error
        try:
            raise ambient
        except type(ambient):
            with KeptContext(error):
                raise error  # noqa: B904 - as the caller's own code would


def linked(*errors: BaseException) -> BaseException:
    """Return the first of errors, each of which has the next for its context."""
    for one, other in pairwise(errors):
        one.__context__ = other
    return errors[0]


def test_chain_ends_with_what_the_caller_handled() -> None:
    cause, ambient = KeyError(), LookupError()
    error = linked(ValueError(), cause)
    raise_again(error, ambient)
    assert error.__context__ is cause
    assert cause.__context__ is ambient


def test_without_a_context_python_gives_it_the_callers() -> None:
    error, ambient = ValueError(), LookupError()
    raise_again(error, ambient)
    assert error.__context__ is ambient


def test_a_chain_that_has_the_callers_already_is_left_alone() -> None:
    cause, ambient = KeyError(), LookupError()
    error = linked(ValueError(), cause, ambient)
    raise_again(error, ambient)
    assert (error.__context__, cause.__context__) == (cause, ambient)
    assert ambient.__context__ is None


def test_nothing_handled_changes_nothing() -> None:
    cause = KeyError()
    error = linked(ValueError(), cause)
    raise_again(error, None)
    assert error.__context__ is cause
    assert cause.__context__ is None


@pytest.mark.parametrize("is_ambient", [True, False])
def test_no_ring_is_made(is_ambient: bool) -> None:
    shared = KeyError()
    error = linked(ValueError(), shared)
    ambient = shared if is_ambient else linked(LookupError(), shared)
    raise_again(error, ambient)
    assert error.__context__ is shared
    assert shared.__context__ is None


def test_a_ring_that_is_there_ends_the_walk() -> None:
    one, other = KeyError(), IndexError()
    one.__context__, other.__context__ = other, one
    error = linked(ValueError(), one)
    raise_again(error, LookupError())
    assert error.__context__ is one


def test_error_that_the_caller_handles_itself_keeps_its_context() -> None:
    cause = KeyError()
    error = linked(ValueError(), cause)
    with contextlib.suppress(ValueError):
        try:
            raise error
        except ValueError:
            with KeptContext(error):
                raise error  # noqa: B904 - itself
    assert error.__context__ is cause
    assert cause.__context__ is None
