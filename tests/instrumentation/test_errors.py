"""Every public exception survives the way back from another process."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fuseboard
from fuseboard import ErrorClass, errors
from fuseboard.errors import Problem

MAKERS: dict[str, Callable[[], errors.FuseboardError]] = {
    "FuseboardError": lambda: errors.FuseboardError("text"),
    "ConfigurationError": lambda: errors.ConfigurationError("Retry(attempts=0): ..."),
    "CallRejectedError": lambda: errors.CallRejectedError("no"),
    "CircuitOpenError": lambda: errors.CircuitOpenError(
        "search", "search/eu", 4.5, ErrorClass.L3_TRANSIENT
    ),
    "BudgetExhaustedError": lambda: errors.BudgetExhaustedError("search", 20.0),
    "AttemptTimeoutError": lambda: errors.AttemptTimeoutError("search", 5.0),
    "AbandonedThreadsError": lambda: errors.AbandonedThreadsError("search", 32),
    "SessionBudgetError": lambda: errors.SessionBudgetError("search", "requests", 100),
    "RepeatedCallError": lambda: errors.RepeatedCallError("search", 11),
    "LimitExceededError": lambda: errors.LimitExceededError("search", 1.0, 0.5),
    "InvalidResultError": lambda: errors.InvalidResultError(
        "search", {"a": 1}, "returned", "advice", [Problem("a", "is no text")]
    ),
}


def known_errors() -> set[str]:
    return {
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.FuseboardError)
    }


def test_every_error_is_tested_here() -> None:
    # One that needs arguments of its own and is not here may well not survive.
    needs_no_maker = {
        name
        for name in known_errors() - MAKERS.keys()
        if "__init__" not in vars(getattr(errors, name))
    }
    assert known_errors() - MAKERS.keys() - needs_no_maker == set()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(name: str, protocol: int) -> None:
    error = MAKERS[name]()
    error.add_note("seen in a test")
    found = pickle.loads(pickle.dumps(error, protocol))
    assert type(found) is type(error)
    assert (str(found), found.args) == (str(error), error.args)
    assert vars(found) == vars(error)


@pytest.mark.parametrize("name", MAKERS)
def test_errors_survive_copying(name: str) -> None:
    error = MAKERS[name]()
    assert vars(copy.copy(error)) == vars(error)
    assert str(copy.deepcopy(error)) == str(error)


def test_what_cannot_be_pickled_is_left_out() -> None:
    error = errors.InvalidResultError("search", threading.Lock(), "returned a lock", "advice")
    found = pickle.loads(pickle.dumps(error))
    assert found.value is None
    assert (found.tool, str(found)) == ("search", str(error))
    assert error.value is not None, "the error itself keeps it"


def _raise(name: str) -> Any:
    raise MAKERS[name]()


def test_a_worker_process_can_send_them_back() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for name, make in MAKERS.items():
            with pytest.raises(fuseboard.FuseboardError) as caught:
                pool.apply(_raise, (name,))
            assert type(caught.value) is type(make())
            assert str(caught.value) == str(make())
