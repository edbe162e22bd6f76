"""HC-18 and HC-20: exceptions in groups, in chains, in circles."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from fuseboard import ErrorClass, Outcome
from fuseboard.classification import judge_exception
from fuseboard.record import Fault, Verdict

L1, L2, L3, L4, UN = (
    ErrorClass.L1_INPUT,
    ErrorClass.L2_ACCESS,
    ErrorClass.L3_TRANSIENT,
    ErrorClass.L4_PERSISTENT,
    ErrorClass.UNCLASSIFIED,
)


class WithStatus(Exception):  # noqa: N818
    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code


class ToolError(Exception):
    pass


def fault_of(error: BaseException, **more: Any) -> Fault:
    fault = judge_exception(error, 0.0, **more)
    assert isinstance(fault, Fault)
    return fault


def judge(error: BaseException, **more: Any) -> Verdict:
    return fault_of(error, **more).verdict


def raised(make: Any) -> BaseException:
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def http_503() -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://127.0.0.1/")
    return httpx.HTTPStatusError("?", request=request, response=httpx.Response(503))


def test_hc_18_leaves_decide_and_cancellation_is_noise() -> None:
    group = BaseExceptionGroup(
        "g", [ExceptionGroup("h", [ConnectionRefusedError()]), asyncio.CancelledError()]
    )
    fault = fault_of(group)
    assert fault.verdict.error_class is L3
    assert fault.verdict.retryable
    assert fault.error_type == "BaseExceptionGroup", "what the caller sees"
    assert fault.verdict.cause_type == "ConnectionRefusedError", "what decided"


def test_hc_18_all_cancelled_is_cancelled() -> None:
    group = BaseExceptionGroup("g", [asyncio.CancelledError(), asyncio.CancelledError()])
    assert judge_exception(group, 0.0) is Outcome.CANCELLED


@pytest.mark.parametrize(
    ("leaves", "cls", "retryable"),
    [
        ([WithStatus(503), WithStatus(404)], L3, False),
        ([WithStatus(503), KeyError()], L4, False),
        ([WithStatus(401), WithStatus(503)], L2, False),
        ([WithStatus(503), ConnectionResetError()], L3, True),
        ([RuntimeError(), WithStatus(404)], UN, False),
    ],
    ids=str,
)
def test_hc_18_gravest_leaf_decides(leaves: Any, cls: ErrorClass, retryable: bool) -> None:
    for order in (leaves, leaves[::-1]):
        verdict = judge(ExceptionGroup("g", order))
        assert (verdict.error_class, verdict.retryable) == (cls, retryable)


def test_hc_18_the_words_say_how_many_leaves_there_are_and_which() -> None:
    one = BaseExceptionGroup(
        "unhandled errors in a TaskGroup",
        [ExceptionGroup("h", [ConnectionRefusedError("port 1")]), asyncio.CancelledError()],
    )
    assert fault_of(one).message == (
        "unhandled errors in a TaskGroup (2 sub-exceptions): ConnectionRefusedError: port 1"
    )
    many = ExceptionGroup("g", [ExceptionGroup("h", [KeyError(n) for n in range(4)]), OSError("x")])
    assert fault_of(many).message == (
        "g (2 sub-exceptions): 5 faults: KeyError: 0; KeyError: 1; KeyError: 2; and 2 more"
    )


def test_hc_18_same_leaf_twice_and_wrapped_leaves() -> None:
    leaf = ToolError()
    leaf.__cause__ = WithStatus(503)
    assert judge(ExceptionGroup("g", [leaf, leaf])).error_class is L3
    outer = ToolError()
    outer.__cause__ = ExceptionGroup("g", [WithStatus(403)])
    assert judge(outer).error_class is L2


def test_hc_18_interrupt_in_a_group() -> None:
    pause = type("GraphInterrupt", (Exception,), {"__module__": "langgraph.errors"})()
    group = BaseExceptionGroup("g", [pause, asyncio.CancelledError()])
    assert judge_exception(group, 0.0) is Outcome.INTERRUPTED
    assert isinstance(judge_exception(ExceptionGroup("g", [pause, KeyError()]), 0.0), Fault)


def test_hc_18_class_of_the_backport() -> None:
    base = type("BaseExceptionGroup", (Exception,), {"__module__": "exceptiongroup._exceptions"})
    group = base()
    group.exceptions = (ConnectionRefusedError(), group)
    assert judge(group).error_class is L3


def test_hc_20_wrapper_is_seen_and_the_cause_decides() -> None:
    def wrap() -> None:
        try:
            raise http_503()
        except httpx.HTTPStatusError as error:
            raise ToolError("failed") from error

    fault = fault_of(raised(wrap))
    assert fault.error_type.endswith("ToolError")
    assert fault.verdict.error_class is L3
    assert fault.verdict.cause_type == "httpx.HTTPStatusError"
    assert fault.verdict.http_status == 503


def test_hc_20_context_counts_unless_suppressed() -> None:
    def wrap(suppressed: bool) -> None:
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            if suppressed:
                raise ToolError from None
            raise ToolError  # noqa: B904 - the point of the test

    assert judge(raised(lambda: wrap(False))).error_class is L3
    assert judge(raised(lambda: wrap(True))).error_class is UN


def test_hc_20_defect_while_handling_is_the_tools_own() -> None:
    def handle() -> None:
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            {}["retries"]

    assert judge(raised(handle)).error_class is L4


def test_hc_20_ambient_exception_of_the_caller_is_left_out() -> None:
    ambient = ConnectionResetError()
    error = ToolError()
    error.__context__ = ambient
    assert judge(error).error_class is L3
    assert judge(error, ambient=ambient).error_class is UN


def test_hc_20_retry_error_of_tenacity() -> None:
    error = type("RetryError", (Exception,), {"__module__": "tenacity"})()
    future = type("Future", (), {})()
    future._exception = http_503()
    error.last_attempt = future
    assert judge(error).http_status == 503


def test_hc_20_circle_ends() -> None:
    a, b = ToolError("a"), ToolError("b")
    a.__cause__, b.__cause__ = b, a
    started = time.perf_counter()
    for _ in range(100):
        assert judge(a).error_class is UN
    assert (time.perf_counter() - started) / 100 < 0.01
    group: Any = ExceptionGroup("g", [a])
    a.__cause__ = group
    assert judge(group).error_class is UN


def test_hc_20_endless_chain_is_cut() -> None:
    class Hydra(Exception):  # noqa: N818
        @property
        def reason(self) -> Exception:
            return Hydra()

    assert judge(Hydra()).error_class is UN
    error: BaseException = WithStatus(503)
    for _ in range(10_000):
        wrapper = ToolError()
        wrapper.__cause__ = error
        error = wrapper
    assert judge(error).error_class is UN, "deeper than the cap: unknown stays unknown"
