"""The fast path: cheaper than the SDK's spans, and to all who look the same."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_collector import as_dict
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

import fuseboard
from fuseboard import setup
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.tool_span import ToolSpan


class Watcher(SpanProcessor):
    """Another processor on our provider, which sends all spans by way of the SDK."""

    def __init__(self) -> None:
        self.ended: list[Any] = []

    def on_end(self, span: Any) -> None:
        self.ended.append(span)


@pytest.fixture(params=["fast", "sdk"])
def path(request: pytest.FixtureRequest, start: Any) -> str:
    start(region="eu-west")
    if request.param == "sdk":
        trace.get_tracer_provider().add_span_processor(Watcher())  # type: ignore[attr-defined]
    return str(request.param)


def scenario(name: str) -> None:
    """Calls of every shape; what they leave must not depend on the path."""

    @fuseboard.tool(name="search")
    def search(query: str) -> Any:
        if query == "fail":
            raise ConnectionResetError("reset by peer")
        return {"ok": False, "error": "boom"} if query == "packet" else [query]

    @fuseboard.tool(
        name="book",
        policy=fuseboard.Policy(
            retry=fuseboard.Retry(attempts=3, wait_initial=0.001), effects="none"
        ),
        upstream="api.example",
    )
    def book(fails: int, tries: list[int]) -> str:
        tries.append(1)
        if len(tries) <= fails:
            raise TimeoutError("slow")
        return "booked"

    @fuseboard.tool(name="stream")
    def stream(items: int) -> Iterator[int]:
        yield from range(items)

    @fuseboard.tool(name="outer")
    def outer(query: str) -> Any:
        span = trace.get_current_span()
        span.set_attribute("mine", 7)
        span.add_event("looked", {"deep": True})
        return search(query)

    with trace.get_tracer("app").start_as_current_span(name):
        search("a")
        search("packet")
        for fails in (0, 1, 3):
            with contextlib.suppress(TimeoutError):
                book(fails, [])
        for query in ("fail", "b"):
            with contextlib.suppress(ConnectionResetError):
                outer(query)
        list(stream(3))


def essence(spans: list[Any]) -> list[Any]:
    """All of the spans but what differs from run to run."""
    by_id = {span.span_id: span for span in spans}

    def described(span: Any) -> tuple[Any, ...]:
        attributes = as_dict(span.attributes)
        for key in ("fuseboard.attempt.seconds", "fuseboard.backoff_seconds",
                    "fuseboard.attempt.delay_seconds",
                    "fuseboard.stream.first_item_seconds"):  # fmt: skip
            if key in attributes:
                attributes[key] = type(attributes[key])
        parent = by_id.get(span.parent_span_id)
        events = [(event.name, as_dict(event.attributes)) for event in span.events]
        return (
            span.name, span.kind, span.status.code, span.status.message, span.flags,
            span.trace_state, parent.name if parent is not None else None,
            sorted(attributes.items()), events,
            span.start_time_unix_nano <= span.end_time_unix_nano,
        )  # fmt: skip

    return sorted((described(span) for span in spans), key=repr)


def test_both_paths_leave_the_same_spans(start: Any, collector: Any) -> None:
    start(region="eu-west")
    scenario("run")
    assert setup.flush(10.0)
    fast = collector.spans()
    watcher = Watcher()
    trace.get_tracer_provider().add_span_processor(watcher)  # type: ignore[attr-defined]
    scenario("run")
    assert setup.flush(10.0)
    by_the_sdk = [span for span in collector.spans() if span not in fast]
    assert len(fast) == len(watcher.ended) > 15
    assert essence(fast) == essence(by_the_sdk)


def test_a_call_that_nobody_looks_at_takes_the_fast_path(start: Any, collector: Any) -> None:
    start()
    seen: list[Any] = []

    @fuseboard.tool
    def look() -> None:
        seen.append(trace.get_current_span())

    look()
    assert type(seen[0]) is ToolSpan
    assert seen[0].full is None
    assert setup.flush(10.0)
    (span,) = collector.spans()
    assert span.span_id == seen[0].get_span_context().span_id.to_bytes(8, "big")


def test_what_the_tool_does_to_its_span_arrives(path: str, collector: Any) -> None:
    other = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))

    @fuseboard.tool
    def busy() -> None:
        span: Any = trace.get_current_span()
        assert span.is_recording()
        span.set_attribute("number", 1)
        span.set_attributes({"text": "a", "list": [1, 2]})
        span.add_event("event", {"n": 2}, timestamp=12345)
        span.add_link(other, {"why": "test"})
        span.record_exception(ValueError("noted"))
        span.update_name("renamed")
        span.set_status(StatusCode.ERROR, "bad")
        assert span.name == "renamed"
        assert span.attributes["number"] == 1

    busy()
    assert setup.flush(10.0)
    (span,) = collector.spans()
    attributes = as_dict(span.attributes)
    assert (attributes["number"], attributes["text"]) == (1, "a")
    assert attributes["fuseboard.outcome"] == "ok"
    assert [event.name for event in span.events] == ["event", "exception"]
    assert span.events[0].time_unix_nano == 12345
    assert span.links[0].span_id == (0xDEF).to_bytes(8, "big")
    assert (span.name, span.status.message) == ("renamed", "bad")


def test_a_span_is_deaf_after_its_end(path: str, collector: Any) -> None:
    kept: list[Any] = []

    @fuseboard.tool
    def keep() -> None:
        kept.append(trace.get_current_span())

    keep()
    kept[0].set_attribute("late", True)
    kept[0].add_event("late")
    kept[0].end()
    assert not kept[0].is_recording()
    assert setup.flush(10.0)
    (span,) = collector.spans()
    assert "late" not in as_dict(span.attributes)
    assert not span.events


def test_children_of_others_hang_under_the_right_span(path: str, collector: Any) -> None:
    tracer = trace.get_tracer("httpx")
    tries: list[int] = []

    @fuseboard.tool(
        policy=fuseboard.Policy(
            retry=fuseboard.Retry(attempts=2, wait_initial=0.001), effects="none"
        )
    )
    def fetch() -> None:
        tries.append(1)
        with tracer.start_as_current_span(f"GET {len(tries)}"):
            if len(tries) == 1:
                raise TimeoutError

    fetch()
    assert setup.flush(10.0)
    spans = {span.name: span for span in collector.spans()}
    attempts = [s for s in collector.spans() if s.name == "tool_attempt fetch"]
    numbers = {as_dict(a.attributes)["fuseboard.attempt.number"]: a for a in attempts}
    assert spans["GET 1"].parent_span_id == spans["execute_tool fetch"].span_id
    assert spans["GET 2"].parent_span_id == numbers[2].span_id
    assert len({span.trace_id for span in collector.spans()}) == 1


def call_under(parent: SpanContext) -> None:
    """Call a tool while a span of somebody else's is current."""

    @fuseboard.tool
    def work() -> None:
        pass

    with trace.use_span(NonRecordingSpan(parent)):
        work()
    assert setup.flush(10.0)


@pytest.mark.parametrize("is_remote", [True, False])
def test_a_foreign_parent_is_kept(path: str, collector: Any, is_remote: bool) -> None:
    call_under(SpanContext(0x1234, 0x5678, is_remote=is_remote, trace_flags=TraceFlags(1)))
    (span,) = collector.spans()
    assert span.parent_span_id == (0x5678).to_bytes(8, "big")
    assert span.trace_id == (0x1234).to_bytes(16, "big")
    assert bool(span.flags & 0x200) == is_remote


def test_a_parent_that_is_not_sampled_decides(path: str, collector: Any) -> None:
    call_under(SpanContext(0x1234, 0x5678, is_remote=True, trace_flags=TraceFlags(0)))
    assert collector.spans() == []
    assert [event.event_name for event in collector.logs()].count("fuseboard.tool.call") == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "5"),
        ("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", "true"),
    ],
)
def test_what_the_sdk_was_asked_to_do_is_left_to_it(
    start: Any, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    start()
    seen: list[Any] = []

    @fuseboard.tool
    def look() -> None:
        seen.append(trace.get_current_span())

    look()
    assert type(seen[0]) is not ToolSpan


def test_a_processor_that_comes_in_mid_call_sees_the_call(start: Any) -> None:
    start()
    watcher = Watcher()

    @fuseboard.tool
    def late() -> None:
        trace.get_tracer_provider().add_span_processor(watcher)  # type: ignore[attr-defined]

    late()
    late_names = [span.name for span in watcher.ended]
    assert late_names == ["execute_tool late"]


def test_a_finished_call_is_no_reference_cycle(start: Any) -> None:
    start()

    @fuseboard.tool
    def work(fails: bool) -> None:
        if fails:
            raise ConnectionResetError

    @fuseboard.tool
    async def work_async() -> None:
        await asyncio.sleep(0)

    spans: list[weakref.ref[Any]] = []
    original = ToolSpan.__init__

    def noted(self: ToolSpan, *args: Any) -> None:
        original(self, *args)
        spans.append(weakref.ref(self))

    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ToolSpan, "__init__", noted)
            work(False)
            with pytest.raises(ConnectionResetError):
                work(True)
            asyncio.run(work_async())
        assert setup.flush(10.0)
        assert len(spans) >= 3
        assert [span() for span in spans] == [None] * len(spans)
    finally:
        gc.enable()


def test_seeding_the_random_module_repeats_no_id(start: Any, collector: Any) -> None:
    start()

    @fuseboard.tool
    def work() -> None:
        pass

    for _ in range(20):
        random.seed(42)
        work()
    assert setup.flush(10.0)
    assert len({span.span_id for span in collector.spans()}) == 20


def test_links_and_errors_of_an_inflated_span_survive_a_failure(path: str, collector: Any) -> None:
    @fuseboard.tool
    def work() -> None:
        trace.get_current_span().add_link(SpanContext(1, 2, is_remote=True))
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        work()
    assert setup.flush(10.0)
    call = next(s for s in collector.spans() if s.name == "execute_tool work")
    assert len(call.links) == 1
    assert call.status.message == "gone"
    assert as_dict(call.attributes)["error.type"] == "ConnectionResetError"


@pytest.mark.parametrize("argument", ["short", 7, None, "x" * 5000, ["list"], {"a": [1]}])
def test_the_hash_is_the_same_now_and_later(
    start: Any, collector: Any, argument: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()

    @fuseboard.tool(name="t")
    def work(value: Any, more: int = 0) -> None:
        if isinstance(value, list):
            value.append("changed by the tool")

    work(argument, more=3)
    assert setup.flush(10.0)
    (span,) = collector.spans()
    before = ["list"] if isinstance(argument, list) else argument
    expected = fuseboard.arguments.hash_arguments({"value": before, "more": 3})
    assert as_dict(span.attributes)["fuseboard.args_hash"] == expected


def test_broken_telemetry_of_the_fast_path_costs_no_call(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()

    def broken(*args: object) -> None:
        raise RuntimeError

    sink: Any = RUNTIME.telemetry
    monkeypatch.setattr(sink._spans, "begin", broken)
    monkeypatch.setattr(sink._spans, "end", broken)
    work: Callable[[int], int] = fuseboard.tool(abs, name="absolute")
    assert work(-1) == 1
