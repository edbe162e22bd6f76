"""S3.3: a long tool is submitted once and asked for its result; one call, one span."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scripted_tools import BOTH, status_error

import fuseboard
from fuseboard import (
    AbandonedThreadsError,
    AskUserError,
    AttemptTimeoutError,
    BudgetExhaustedError,
    ConfigurationError,
    ErrorClass,
    Fallback,
    Feedback,
    InvalidResultError,
    Outcome,
    Pending,
    Policy,
    Poll,
    Retry,
    Validation,
    guard,
)
from fuseboard.conventions import Layer
from fuseboard.policy.workers import THREADS

RETRY = Retry(attempts=5, wait_initial=0, semantic=True)


class Job:
    """A server that takes a job on and answers by a script when it is asked for it."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.submitted: list[Any] = []
        self.asked: list[Any] = []

    def submit(self, order: int = 7) -> Any:
        self.submitted.append(order)
        return f"ticket {order}"

    def check(self, ticket: Any) -> Any:
        self.asked.append(ticket)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def make(job: Job, *, is_async: bool = False, poll: Any = None, **policy: Any) -> Any:
    """Return a function that runs a tool that submits a job to its end."""
    options = {"interval": 1.0, "interval_max": 4.0, **(poll or {})}
    settings = Policy(poll=Poll(job.check, **options), **policy)
    if not is_async:
        return fuseboard.wrap(lambda order=7: job.submit(order), name="work", policy=settings)

    async def work(order: int = 7) -> Any:
        await asyncio.sleep(0)
        return job.submit(order)

    tool = fuseboard.wrap(work, name="work", policy=settings)
    return lambda *args: asyncio.run(tool(*args))


@BOTH
def test_the_result_is_the_answer_of_the_call(telemetry: Any, clock: Any, is_async: bool) -> None:
    job = Job(Pending(), Pending(0.5), Pending(), "done")
    assert make(job, is_async=is_async)(7) == "done"
    assert (job.submitted, job.asked) == ([7], ["ticket 7"] * 4)
    assert clock.slept == [1.0, 1.5, 2.25, 3.375]
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts), call.backoff_seconds) == (Outcome.OK, 1, 0.0)
    assert call.duration == call.attempts[0].duration == 8.125


@BOTH
def test_waits_are_bounded_and_the_server_may_name_them(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    pending: list[Any] = [Pending()] * 5
    assert make(Job(*pending, "done"), is_async=is_async)() == "done"
    assert clock.slept == [1.0, 1.5, 2.25, 3.375, 4.0, 4.0]
    clock.slept.clear()
    job = Job(Pending(wait=9), Pending(wait=-1), Pending(wait=float("nan")), "done")
    assert make(job, is_async=is_async)() == "done"
    assert clock.slept == [1.0, 9.0, 1.5, 2.25]


@BOTH
def test_packet_of_a_job_that_is_under_way_asks_nobody_to_submit_it_again(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    def packet_for(*, submits: bool, **policy: Any) -> Any:
        def submit() -> str:
            if not submits:
                raise ConnectionRefusedError
            return "ticket"

        async def submit_later() -> str:
            return submit()

        job = Job(ConnectionRefusedError())
        settings = Policy(poll=Poll(job.check, faults=0), **policy)
        tool: Any = fuseboard.wrap(
            submit_later if is_async else submit, policy=settings, on_error="packet"
        )
        return asyncio.run(tool()) if is_async else tool()

    assert packet_for(submits=False)["recoverable"], "nothing was sent"
    packet = packet_for(submits=True)
    assert packet["error_code"] == "temporarily_unavailable"
    assert not packet["recoverable"]
    assert "took effect" in packet["suggestion"]
    assert packet_for(submits=True, effects="idempotent")["recoverable"]


@BOTH
def test_time_runs_out_and_the_job_is_not_submitted_again(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    job = Job(Pending())
    tool = make(job, is_async=is_async, poll={"timeout": 10}, retry=RETRY, effects="none")
    with pytest.raises(AttemptTimeoutError, match="10 s") as caught:
        tool()
    assert caught.value.timeout == 10
    assert len(job.submitted) == 1
    assert sum(clock.slept) == pytest.approx(10), "the last check is at the very end"
    call = telemetry.last
    assert (call.outcome, call.layer, len(call.attempts)) == (Outcome.ERROR, Layer.TIMEOUT, 1)
    assert call.fault.verdict.ambiguous
    assert ("timeout", "timed_out") in call.layer_actions


@BOTH
def test_the_budget_bounds_the_wait(telemetry: Any, clock: Any, is_async: bool) -> None:
    job = Job(Pending())
    with pytest.raises(BudgetExhaustedError):
        make(job, is_async=is_async, budget=5)()
    assert sum(clock.slept) == pytest.approx(5)
    assert telemetry.last.layer is Layer.BUDGET


@BOTH
def test_transient_faults_of_the_check_are_tolerated(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    lost, busy = ConnectionResetError(), status_error(503, **{"Retry-After": "7"})
    job = Job(lost, Pending(), lost, busy, lost, "done")
    assert make(job, is_async=is_async, retry=RETRY, effects="none")() == "done"
    assert len(job.submitted) == 1
    assert clock.slept == [1.0, 1.5, 2.25, 3.375, 7.0, 4.0]
    call = telemetry.last
    assert (call.outcome, len(call.attempts), call.fault) == (Outcome.OK, 1, None)


@BOTH
@pytest.mark.parametrize("effects", ["none", "unsafe"])
def test_too_many_faults_in_a_row_end_the_call_and_never_submit_again(
    telemetry: Any, clock: Any, is_async: bool, effects: str
) -> None:
    refused = ConnectionRefusedError()
    job = Job(refused)
    with pytest.raises(ConnectionRefusedError) as caught:
        make(job, is_async=is_async, poll={"faults": 2}, retry=RETRY, effects=effects)()
    assert caught.value is refused
    assert (len(job.submitted), len(job.asked)) == (1, 3)
    verdict = telemetry.last.fault.verdict
    assert verdict.error_class is ErrorClass.L3_TRANSIENT
    assert verdict.ambiguous, "the job may well be done"


@BOTH
def test_a_job_that_has_failed_ends_the_call_at_once(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    error = KeyError("failed")
    job = Job(Pending(), error, "never")
    with pytest.raises(KeyError) as caught:
        make(job, is_async=is_async, retry=RETRY, effects="none")()
    assert caught.value is error
    assert (len(job.submitted), len(job.asked)) == (1, 2)


@BOTH
def test_a_fault_of_submitting_is_retried_as_usual(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    job = Job("done")
    faults = [ConnectionRefusedError(), ConnectionRefusedError()]
    submit = job.submit

    def flaky(order: int = 7) -> Any:
        if faults:
            raise faults.pop()
        return submit(order)

    job.submit = flaky  # type: ignore[method-assign]
    assert make(job, is_async=is_async, retry=RETRY)() == "done"
    assert len(telemetry.last.attempts) == 3


@BOTH
def test_what_says_that_the_job_was_not_taken_is_no_ticket(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    packet = {"ok": False, "error_code": "too_large"}
    job = Job("never")
    job.submit = lambda order=7: packet  # type: ignore[method-assign]
    assert make(job, is_async=is_async)() is packet
    assert job.asked == []
    assert telemetry.last.outcome is Outcome.ERROR


@BOTH
def test_an_answer_that_is_refused_may_be_asked_for_anew_where_that_does_no_harm(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    settings: dict[str, Any] = {"validation": Validation(non_empty=True), "retry": RETRY}
    job = Job([], ["x"])
    assert make(job, is_async=is_async, effects="none", **settings)() == ["x"]
    assert len(job.submitted) == 2
    job = Job([], ["x"])
    with pytest.raises(InvalidResultError):
        make(job, is_async=is_async, effects="unsafe", **settings)()
    assert len(job.submitted) == 1


def test_a_correction_is_another_job(telemetry: Any, clock: Any) -> None:
    job = Job(status_error(422), "done")
    feedback = Feedback(lambda mistake: {"order": 8})
    assert make(job, feedback=feedback, effects="idempotent")(7) == "done"
    assert job.submitted == [7, 8]
    job = Job(status_error(422), "done")
    with pytest.raises(type(status_error(422))):
        make(job, feedback=feedback, effects="unsafe")(7)
    assert job.submitted == [7], "it is not known what the first one did"


def test_hc_24_an_unsafe_fallback_is_passed_over_once_there_is_a_ticket(
    telemetry: Any, clock: Any
) -> None:
    job = Job(ConnectionRefusedError())
    acts = Fallback(lambda order=7: "sent otherwise", effects="unsafe")
    with pytest.raises(ConnectionRefusedError):
        make(job, fallback=acts)()
    reads = Fallback(lambda order=7: "what is known")
    assert make(job, fallback=(acts, reads))() == "what is known"


@BOTH
def test_progress_is_told_and_a_listener_that_raises_does_no_harm(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    telemetry.may_fault = True
    seen: list[Any] = []

    def listen(pending: Pending) -> None:
        seen.append(pending.progress)
        raise KeyError("bug")

    job = Job(Pending("queued"), Pending(0.5), "done")
    assert make(job, is_async=is_async, poll={"on_pending": listen})() == "done"
    assert seen == ["queued", 0.5]
    assert guard.fault_counts() == {("telling of a job that is not done", "KeyError"): 2}


@pytest.mark.parametrize("error", [AskUserError("Which?"), KeyboardInterrupt()])
@BOTH
def test_control_flow_of_a_check_passes(
    telemetry: Any, clock: Any, error: BaseException, is_async: bool
) -> None:
    with pytest.raises(type(error)):
        make(Job(error), is_async=is_async)()
    assert telemetry.last.outcome in (Outcome.INTERRUPTED, Outcome.CANCELLED)


async def test_an_async_check_runs_in_the_callers_task(telemetry: Any) -> None:
    tasks = []

    async def check(ticket: int) -> Any:
        tasks.append(asyncio.current_task())
        return "done" if len(tasks) == 3 else Pending(wait=0)

    @fuseboard.tool(policy=Policy(poll=Poll(check, interval=0.001)))
    async def work() -> int:
        return 1

    assert await work() == "done"  # type: ignore[comparison-overlap]
    assert tasks == [asyncio.current_task()] * 3


@pytest.mark.parametrize("place", ["wait", "check"])
async def test_hc_04_cancelling_ends_the_wait(telemetry: Any, place: str) -> None:
    begun = asyncio.Event()

    async def check(ticket: int) -> Any:
        begun.set()
        if place == "check":
            await asyncio.sleep(60)
        return Pending(wait=60)

    @fuseboard.tool(policy=Policy(poll=Poll(check, interval=0.001)))
    async def work() -> int:
        return 1

    task = asyncio.ensure_future(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


async def test_a_check_that_hangs_is_cut_off_and_asked_again(telemetry: Any) -> None:
    asked: list[int] = []

    async def check(ticket: int) -> Any:
        asked.append(ticket)
        if len(asked) < 3:
            await asyncio.sleep(60)
        return "done"

    @fuseboard.tool(policy=Policy(poll=Poll(check, interval=0.001), timeout=0.02))
    async def work() -> int:
        return 1

    assert await work() == "done"  # type: ignore[comparison-overlap]
    assert asked == [1, 1, 1]


def test_a_sync_check_that_hangs_is_left_behind(telemetry: Any) -> None:
    let_go, asked = threading.Event(), []

    def check(ticket: int) -> Any:
        asked.append(ticket)
        if len(asked) == 1:
            let_go.wait(60)
        return "done"

    tool = fuseboard.wrap(
        lambda: 1, name="work", policy=Policy(poll=Poll(check, interval=0.001), timeout=0.05)
    )
    try:
        assert tool() == "done"  # type: ignore[comparison-overlap]
    finally:
        let_go.set()
    assert len(telemetry.last.attempts) == 1


async def _async_check(ticket: Any) -> Any: ...


def _stream() -> Iterator[int]:
    yield 1


async def _stream_later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: Poll("x"), "must be a function of the ticket"),  # type: ignore[arg-type]
        (lambda: Poll(len, interval=0), "interval=0"),
        (lambda: Poll(len, interval=5, interval_max=1), "must be at least interval"),
        (lambda: Poll(len, timeout=-1), "timeout=-1"),
        (lambda: Poll(len, faults=-1), "faults=-1"),
        (lambda: Poll(len, on_pending=3), "on_pending=3"),  # type: ignore[arg-type]
        (lambda: Policy(poll=len), "must be a fuseboard.Poll"),  # type: ignore[arg-type]
        (lambda: fuseboard.wrap(Job().submit, policy=Policy(poll=Poll(_async_check))),
         "needs an async tool"),
        (lambda: fuseboard.wrap(_stream, policy=Policy(poll=Poll(len))), "a stream has no ticket"),
        (lambda: fuseboard.wrap(_stream_later, policy=Policy(poll=Poll(len))), "no ticket"),
    ],
)  # fmt: skip
def test_mistakes_show_where_the_policy_is_written(make_it: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make_it()


def test_hc_29_checks_that_hang_leave_no_more_threads_behind_than_may_be(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(THREADS, "limit", 3)
    answer = threading.Event()
    poll = Poll(lambda ticket: answer.wait(30), interval=0.001, timeout=0.01, faults=0)
    work = fuseboard.wrap(lambda: "ticket", name="work", policy=Policy(poll=poll))
    try:
        for _ in range(3):
            with pytest.raises(AttemptTimeoutError):
                work()
        with pytest.raises(AbandonedThreadsError):
            work()
        assert THREADS.count_abandoned() == 3
    finally:
        answer.set()
    assert telemetry.last.outcome is Outcome.REJECTED
    deadline = time.monotonic() + 20
    while THREADS.count_abandoned() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert work()
