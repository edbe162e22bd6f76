"""The export: it waits for nobody, keeps for five minutes, and counts what it loses."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from typing import Any

import handmade_calls as handmade
import pytest
from fake_collector import wait_until
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider

import fuseboard
from fuseboard import setup
from fuseboard.telemetry.encoding import Encoder
from fuseboard.telemetry.losses import Losses, Reason, Signal
from fuseboard.telemetry.pipeline import Limits, Pipeline
from fuseboard.telemetry.sending import Answer, Delivered, HttpSender, Refused, Unavailable

TRACER = TracerProvider(shutdown_on_exit=False).get_tracer("fuseboard")


def a_span() -> Any:
    span = TRACER.start_span("execute_tool search")
    span.end()
    return span._readable_span()  # type: ignore[attr-defined]


class FakeTime:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class ScriptedSender:
    """Answers as told; the last answer repeats."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sent: list[bytes] = []

    def send(self, signal: Signal, body: bytes, timeout: float) -> Answer:
        self.sent.append(body)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def close(self) -> None:
        pass


AWAY = Unavailable("ConnectionRefusedError", is_refused=True)


def pipeline(sender: Any, now: Any, **limits: Any) -> tuple[Pipeline, Losses]:
    losses = Losses(now)
    built = Pipeline(
        sender,
        Encoder({}),
        losses,
        where="http://collector",
        monotonic=now,
        uniform=lambda low, high: high,
        limits=Limits(**limits),
    )
    # These tests take each step of the worker themselves.
    built._thread = threading.current_thread()
    return built, losses


def lost(losses: Losses) -> dict[str, int]:
    return {f"{s.value}/{r.value}": n for (s, r), n in losses.counts().items() if n}


def test_a_batch_is_sent_again_until_the_collector_is_back() -> None:
    now = FakeTime()
    sender = ScriptedSender(AWAY, AWAY, AWAY, Delivered())
    built, losses = pipeline(sender, now)
    built.offer_span(a_span())
    for _ in range(400):
        built.turn()
        now.now += 0.1
    assert len(sender.sent) == 4
    assert len(set(sender.sent)) == 1
    assert built.spans.pending == 0
    assert lost(losses) == {}


def test_after_300_seconds_a_batch_is_given_up_and_counted() -> None:
    now = FakeTime()
    sender = ScriptedSender(AWAY)
    built, losses = pipeline(sender, now)
    for _ in range(3):
        built.offer_span(a_span())
    built.turn()
    now.now += 299.9
    built.turn()
    assert lost(losses) == {}
    assert built.spans.pending == 3
    now.now += 0.2 + 10
    built.turn()
    assert lost(losses) == {"spans/expired": 3}
    assert built.spans.pending == 0


def test_back_off_grows_and_stays_bounded() -> None:
    now = FakeTime()
    sender = ScriptedSender(AWAY)
    built, _ = pipeline(sender, now)
    built.offer_span(a_span())
    times: list[float] = []
    for _ in range(2900):
        sent = len(sender.sent)
        built.turn()
        if len(sender.sent) > sent:
            times.append(now.now)
        now.now += 0.1
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps[0] == pytest.approx(0.5, abs=0.15)
    assert gaps == sorted(gaps[:5]) + gaps[5:]
    assert max(gaps) <= 8.2
    assert len(times) > 30


def test_retry_after_is_respected() -> None:
    now = FakeTime()
    sender = ScriptedSender(Unavailable("HTTP 503", retry_after=40.0), Delivered())
    built, _ = pipeline(sender, now)
    built.offer_span(a_span())
    built.turn()
    now.now += 39.0
    built.turn()
    assert len(sender.sent) == 1
    now.now += 1.1
    built.turn()
    assert len(sender.sent) == 2


def test_the_waiting_room_has_a_byte_budget_and_the_oldest_go_first() -> None:
    now = FakeTime()
    sender = ScriptedSender(AWAY)
    built, losses = pipeline(sender, now, span_bytes=2000)
    for _ in range(30):
        built.offer_span(a_span())
        built.turn()
        now.now += 0.5
    waiting = built.spans.pending
    assert 0 < waiting < 30
    assert lost(losses) == {"spans/buffer_full": 30 - waiting}
    assert sum(len(batch.body) for batch in built.spans._waiting) <= 2000


def test_records_wait_half_a_second_for_company() -> None:
    now = FakeTime()
    sender = ScriptedSender(Delivered())
    built, _ = pipeline(sender, now)
    built.offer_span(a_span())
    built.turn()
    assert len(sender.sent) == 1  # after a quiet time the first one need not wait
    for _ in range(3):
        built.offer_span(a_span())
        built.turn()
        now.now += 0.1
    assert len(sender.sent) == 1
    now.now += 0.2
    built.turn()
    assert len(sender.sent) == 2
    assert built.spans.pending == 0


def test_a_full_batch_does_not_wait_and_leaves_the_rest() -> None:
    now = FakeTime()
    sender = ScriptedSender(Delivered())
    built, _ = pipeline(sender, now, spans=8192)
    for _ in range(2 * built.spans.batch_records + 3):
        built.offer_span(a_span())
    built.spans._collected = now.now
    built.turn()
    assert len(sender.sent) == 2
    assert built.spans.pending == 3


def test_busy_spans_do_not_hold_up_the_log_events() -> None:
    now = FakeTime()
    built, _ = pipeline(ScriptedSender(Delivered()), now)
    built.turn()
    built.logs._collected = now.now
    built.logs._queue.append(None)  # type: ignore[arg-type]
    for _ in range(6):
        for _ in range(built.spans.batch_records):
            built.offer_span(a_span())
        built.turn()
        now.now += 0.1
    assert built.logs.queued == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Refused(400, "HTTP 400"), {"spans/rejected": 2}),
        (Refused(401, "HTTP 401"), {"spans/rejected": 2}),
        (Refused(413, "HTTP 413"), {"spans/too_large": 2}),
        (Delivered(rejected=1, detail="bad id"), {"spans/rejected": 1}),
        (Delivered(), {}),
    ],
)
def test_final_answers_settle_the_batch(answer: Answer, expected: dict[str, int]) -> None:
    built, losses = pipeline(ScriptedSender(answer), FakeTime())
    built.offer_span(a_span())
    built.offer_span(a_span())
    built.turn()
    assert built.spans.pending == 0
    assert lost(losses) == expected


def test_a_sender_that_raises_is_tried_again_after_a_pause_only() -> None:
    class Broken(ScriptedSender):
        def send(self, signal: Signal, body: bytes, timeout: float) -> Answer:
            self.sent.append(body)
            raise UnicodeError("label empty or too long")

    now = FakeTime()
    sender = Broken()
    built, losses = pipeline(sender, now)
    built.offer_span(a_span())
    for _ in range(1000):
        built.turn()
        now.now += 0.01
    assert 2 <= len(sender.sent) <= 10
    now.now += 300
    built.turn()
    assert lost(losses) == {"spans/expired": 1}


def test_hc_32_lines_about_losses_come_once_a_minute_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = FakeTime()
    losses = Losses(now)
    for _ in range(1000):
        losses.add(Signal.SPANS, Reason.QUEUE_FULL)
        losses.add(Signal.LOGS, Reason.EXPIRED, 2)
        now.now += 0.059
    assert len(caplog.records) == 2
    now.now += 60
    losses.add(Signal.SPANS, Reason.QUEUE_FULL)
    assert len(caplog.records) == 3
    assert "1000 telemetry records were lost (queue_full)" in caplog.records[-1].getMessage()


# --- Over a socket --------------------------------------------------------------------------
def sender_to(url: str) -> HttpSender:
    return HttpSender(
        {Signal.SPANS: f"{url}/v1/traces", Signal.LOGS: f"{url}/v1/logs"}, {"X-Team": "sre"}
    )


BODY = Encoder({}).spans([a_span()])[0]


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_statuses_that_pass_are_tried_again(collector: Any, status: int) -> None:
    collector.script = [status]
    collector.retry_after = "7"
    assert sender_to(collector.url).send(Signal.SPANS, BODY, 5.0) == Unavailable(
        f"HTTP {status} {_phrase(status)}", retry_after=7.0
    )


def _phrase(status: int) -> str:
    import http

    return http.HTTPStatus(status).phrase


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 415, 500, 501])
def test_other_statuses_are_final(collector: Any, status: int) -> None:
    collector.script = [status]
    answer = sender_to(collector.url).send(Signal.SPANS, BODY, 5.0)
    assert isinstance(answer, Refused)
    assert answer.status == status


def test_partial_success_is_read(collector: Any) -> None:
    collector.answer_body = ExportTraceServiceResponse(
        partial_success=ExportTracePartialSuccess(rejected_spans=3, error_message="bad id")
    ).SerializeToString()
    assert sender_to(collector.url).send(Signal.SPANS, BODY, 5.0) == Delivered(3, "bad id")


def test_an_unreadable_answer_still_counts_as_delivered(collector: Any) -> None:
    collector.answer_body = b"\xff\xff\xff"
    assert sender_to(collector.url).send(Signal.SPANS, BODY, 5.0) == Delivered()


def test_the_connection_is_kept_and_replaced_when_it_broke(collector: Any) -> None:
    sender = sender_to(collector.url)
    assert sender.send(Signal.SPANS, BODY, 5.0) == Delivered()
    (kept,) = sender._connections.values()
    assert sender.send(Signal.LOGS, BODY, 5.0) == Delivered()
    assert list(sender._connections.values()) == [kept]
    kept.sock.close()  # type: ignore[union-attr]
    assert sender.send(Signal.SPANS, BODY, 5.0) == Delivered()
    assert [path for path, _ in collector.bodies] == ["/v1/traces", "/v1/logs", "/v1/traces"]
    assert all(h["X-Team"] == "sre" for h in collector.headers)
    assert all(h["Content-Encoding"] == "gzip" for h in collector.headers)


def test_nobody_there_and_nobody_answering(refusing_endpoint: str, silent_endpoint: str) -> None:
    refused = sender_to(refusing_endpoint).send(Signal.SPANS, BODY, 5.0)
    assert isinstance(refused, Unavailable)
    assert refused.is_refused
    silent = sender_to(silent_endpoint).send(Signal.SPANS, BODY, 0.2)
    assert isinstance(silent, Unavailable)
    assert not silent.is_refused


@pytest.mark.parametrize("trouble", [503, "lost answer", 429])
def test_one_failing_request_loses_nothing(start: Any, collector: Any, trouble: Any) -> None:
    collector.script = [trouble]
    start()
    calls = [handmade.succeed() for _ in range(50)]
    assert setup.flush(20.0)
    ids = {span.span_id for span in collector.spans()}
    assert ids == {handmade.ids(call).span_id.to_bytes(8, "big") for call in calls}
    # Only where the answer was lost may a span come twice; the collector removes repeats.
    if trouble != "lost answer":
        assert len(collector.spans()) == 50


def test_flush_says_no_while_the_collector_is_silent(start: Any, silent_endpoint: str) -> None:
    start(endpoint=silent_endpoint)
    handmade.succeed()
    began = time.monotonic()
    assert setup.flush(0.3) is False
    assert time.monotonic() - began < 5.0


def test_flush_covers_everything_recorded_before_it_under_load(start: Any, collector: Any) -> None:
    start()
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            handmade.succeed()
            time.sleep(0.0005)  # so that the queue never fills, which is another test

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        mine = handmade.succeed(session="mine")
        assert setup.flush(30.0)
        span_id = handmade.ids(mine).span_id.to_bytes(8, "big")
        assert span_id in {span.span_id for span in collector.spans()}
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_hc_32_with_a_full_queue_every_call_is_counted_somewhere(
    start: Any,
    collector: Any,
    registry: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    collector.delay = 0.05
    start()
    from fuseboard.runtime import RUNTIME

    RUNTIME.register(handmade.TOOL)
    slowest = 0.0
    for _ in range(10_000):
        began = time.perf_counter()
        handmade.succeed()
        slowest = max(slowest, time.perf_counter() - began)
    collector.delay = 0.0
    setup.flush(30.0)
    labels = {"tool": "search", "region": "unknown"}
    counted = registry.get_sample_value(
        "fuseboard_tool_calls_total", {**labels, "outcome": "ok", "error_class": "none"}
    )
    dropped = registry.get_sample_value(
        "fuseboard_telemetry_dropped_total", {"signal": "spans", "reason": "queue_full"}
    )
    assert counted == 10_000
    assert dropped > 0
    assert dropped + len(collector.spans()) == 10_000
    lines = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(lines) <= 2
    assert slowest < 2.0, "a caller waited"


@pytest.mark.parametrize("is_sdk", [False, True], ids=["fast", "sdk"])
def test_hc_32_a_failed_call_that_is_dropped_counts_with_its_attempt(
    start: Any, collector: Any, registry: Any, monkeypatch: pytest.MonkeyPatch, is_sdk: bool
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    if is_sdk:
        monkeypatch.setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "100")
    collector.delay = 0.05
    start()

    @fuseboard.tool
    def search() -> None:
        raise ConnectionRefusedError

    for _ in range(3000):
        with pytest.raises(ConnectionRefusedError):
            search()
    collector.delay = 0.0
    assert setup.shutdown(30.0)
    counted = registry.get_sample_value(
        "fuseboard_tool_calls_total",
        {"tool": "search", "region": "unknown", "outcome": "error", "error_class": "L3_transient"},
    )
    dropped = registry.get_sample_value(
        "fuseboard_telemetry_dropped_total", {"signal": "spans", "reason": "queue_full"}
    )
    assert counted == 3000
    assert dropped > 0
    assert dropped + len(collector.spans()) == 2 * 3000


def test_the_export_traces_nothing_of_its_own(start: Any, collector: Any) -> None:
    """An HTTP instrumentation asks for this key before it makes a span."""
    from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value

    seen: list[Any] = []
    original = HttpSender._post

    def spy(self: Any, *args: Any) -> Any:
        seen.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        return original(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpSender, "_post", spy)
        start()
        handmade.succeed()
        assert setup.flush(20.0)
    assert seen
    assert all(seen)


def test_trouble_and_recovery_are_each_said_once(
    start: Any, collector: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fuseboard")
    collector.script = [503, 503, 503]
    start()
    handmade.succeed()
    assert setup.flush(20.0)
    wait_until(lambda: "answers again" in caplog.text)
    assert caplog.text.count("does not take telemetry") == 1
    assert "HTTP 503" in caplog.text


def test_hc_32_what_is_being_encoded_when_the_pipeline_ends_counts_as_lost() -> None:
    is_encoding, may_go_on = threading.Event(), threading.Event()

    class Slow(Encoder):
        def spans(self, spans: Any) -> Any:
            is_encoding.set()
            assert may_go_on.wait(30)
            return super().spans(spans)

    losses = Losses(time.monotonic)
    built = Pipeline(
        ScriptedSender(AWAY),
        Slow({}),
        losses,
        where="http://collector",
        monotonic=time.monotonic,
        uniform=lambda low, high: high,
    )
    for _ in range(3):
        built.offer_span(a_span())
    assert is_encoding.wait(30)

    built.shutdown(0.01)
    may_go_on.set()

    assert built._thread is not None
    built._thread.join(30)
    assert lost(losses) == {"spans/shutdown": 3}
