"""A request that is too large is sent again in parts; only what is refused alone is lost."""

from __future__ import annotations

import gzip
import threading
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from fuseboard.conventions import EVENT_HEARTBEAT
from fuseboard.telemetry.encoding import Encoder
from fuseboard.telemetry.halving import halve
from fuseboard.telemetry.logs import EventLog, FinishedLog
from fuseboard.telemetry.losses import Losses, Reason, Signal
from fuseboard.telemetry.pipeline import Limits, Pipeline
from fuseboard.telemetry.sending import Answer, Delivered, Refused, Unavailable


def span_named(name: str, scope: str = "fuseboard", service: str = "agent") -> Any:
    resource = Resource({"service.name": service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    span = provider.get_tracer(scope).start_span(name)
    span.end()
    return span._readable_span()  # type: ignore[attr-defined]


def names_in(body: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(gzip.decompress(body))
    return [s.name for g in request.resource_spans for scope in g.scope_spans for s in scope.spans]


class PickySender:
    """Takes at most so many spans at a time, and none called ``huge``."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken: list[str] = []
        self.requests = 0
        self.pauses_at: int | None = None

    def send(self, signal: Signal, body: bytes, timeout: float) -> Answer:
        self.requests += 1
        if self.requests == self.pauses_at:
            return Unavailable("HTTP 503")
        names = names_in(body)
        if len(names) > self.most or "huge" in names:
            return Refused(413, "HTTP 413")
        self.taken += names
        return Delivered()

    def close(self) -> None:
        pass


class Rig:
    """A pipeline whose worker's steps the test takes itself."""

    def __init__(self, sender: PickySender) -> None:
        self.now = 1000.0
        self.losses = Losses(lambda: self.now)
        self.pipeline = Pipeline(
            sender,
            Encoder({}),
            self.losses,
            where="http://collector",
            monotonic=lambda: self.now,
            uniform=lambda low, high: high,
            limits=Limits(),
        )
        self.pipeline._thread = threading.current_thread()

    def lost(self) -> dict[str, int]:
        return {f"{s}/{r}": n for (s, r), n in self.losses.counts().items() if n}


@pytest.mark.parametrize("most", [1, 3, 60])
def test_a_batch_is_split_until_it_is_taken(most: int) -> None:
    sender = PickySender(most)
    rig = Rig(sender)
    wanted = [f"span {number}" for number in range(100)]
    for name in wanted:
        rig.pipeline.offer_span(span_named(name))
    rig.pipeline.turn()
    assert sorted(sender.taken) == sorted(wanted)
    assert rig.lost() == {}
    assert rig.pipeline.spans.pending == 0


def test_only_what_is_refused_alone_is_lost() -> None:
    sender = PickySender(1000)
    rig = Rig(sender)
    for number in range(512):
        rig.pipeline.offer_span(span_named("huge" if number in (7, 300) else "small"))
    rig.pipeline.turn()
    assert sender.taken == ["small"] * 510
    assert rig.lost() == {"spans/too_large": 2}


def test_a_collector_that_refuses_everything_is_asked_a_bounded_number_of_times() -> None:
    sender = PickySender(0)
    rig = Rig(sender)
    for _ in range(64):
        rig.pipeline.offer_span(span_named("small"))
    rig.pipeline.turn()
    assert rig.lost() == {"spans/too_large": 64}
    assert sender.requests == 2 * 64 - 1


def test_parts_wait_for_a_collector_that_goes_away_in_between() -> None:
    sender = PickySender(2)
    sender.pauses_at = 3
    rig = Rig(sender)
    for number in range(8):
        rig.pipeline.offer_span(span_named(f"span {number}"))
    rig.pipeline.turn()
    assert rig.pipeline.spans.pending == 8
    rig.now += 10
    rig.pipeline.turn()
    assert len(sender.taken) == 8
    assert rig.pipeline.spans.pending == 0
    assert rig.lost() == {}


def test_a_flush_waits_for_every_part() -> None:
    sender = PickySender(2)
    rig = Rig(sender)
    for number in range(8):
        rig.pipeline.offer_span(span_named(f"span {number}"))
    lane = rig.pipeline.spans
    lane.collect(rig.now)
    for _ in range(6):  # 8 is refused, 4 is refused, 2, 2, then 4 is refused, 2
        lane.send(lambda signal, body: sender.send(signal, body, 1.0), lambda: rig.now)
        assert lane.batches_settled == 0
    lane.send(lambda signal, body: sender.send(signal, body, 1.0), lambda: rig.now)
    assert (lane.batches_settled, lane.batches_made, lane.pending) == (1, 1, 0)


def test_a_body_that_cannot_be_split_is_lost_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(PickySender(0))
    monkeypatch.setattr("fuseboard.telemetry.lane.halve", lambda *given: 1 / 0)
    for _ in range(5):
        rig.pipeline.offer_span(span_named("small"))
    rig.pipeline.turn()
    assert rig.losses.counts()[Signal.SPANS, Reason.TOO_LARGE] == 5


def test_each_half_keeps_its_resources_and_scopes_and_no_empty_ones() -> None:
    spans = [
        span_named("a", "one", "x"), span_named("b", "two", "x"), span_named("c", "two", "y"),
    ]  # fmt: skip
    body, *_ = Encoder({}).spans(spans)
    whole = names_in(body)
    for first in (1, 2):
        parts = halve(Signal.SPANS, body, first)
        assert [len(names_in(part)) for part in parts] == [first, 3 - first]
        assert names_in(parts[0]) + names_in(parts[1]) == whole
        for part in parts:
            request = ExportTraceServiceRequest.FromString(gzip.decompress(part))
            for group in request.resource_spans:
                (service,) = group.resource.attributes
                for scope in group.scope_spans:
                    expected = {"a": ("x", "one"), "b": ("x", "two"), "c": ("y", "two")}
                    (name,) = [span.name for span in scope.spans]
                    assert (service.value.string_value, scope.scope.name) == expected[name]


def test_log_events_are_split_as_well() -> None:
    events: list[FinishedLog] = []
    log = EventLog("1", Resource({"service.name": "agent"}), events.append)
    for number in range(5):
        log.emit(EVENT_HEARTBEAT, number + 1, {})
    body, *_ = Encoder({}).logs(events)
    times = []
    for part in halve(Signal.LOGS, body, 2):
        request = ExportLogsServiceRequest.FromString(gzip.decompress(part))
        ((scope,),) = (group.scope_logs for group in request.resource_logs)
        times.append([record.time_unix_nano for record in scope.log_records])
    assert times == [[1, 2], [3, 4, 5]]
