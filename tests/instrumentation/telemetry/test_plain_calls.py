"""An ordinary call waits for its export as a flat tuple; nothing of it may be lost on the way."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from fake_collector import as_dict
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from plain_facts import FAULT, FOLLOWS, HELD, NOT_PLAIN, NOT_SENT, lost_by_a_tuple

import fuseboard
from fuseboard import setup
from fuseboard.conventions import BreakerState, Outcome, ResultSource
from fuseboard.record import BegunCall, CallRecord, ToolInfo
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.attributes import ToolParts, end_attributes
from fuseboard.telemetry.pieces import ToolSpanPieces
from fuseboard.telemetry.plain_calls import PlainTools, flatten, unflatten

TOOL = ToolInfo("search", hash_of=lambda args, kwargs: f"v1:{len(args)}{sorted(kwargs.items())}")


def ended_call(**facts: Any) -> CallRecord:
    call = BegunCall(
        TOOL,
        facts.pop("region", None),
        facts.pop("upstream", None),
        1_700_000_000_000_000_000,
        5.0,
        facts.pop("args_hash", None),
        facts.pop("call_id", None),
    )
    for name, value in facts.items():
        setattr(call, name, value)
    call.duration = 0.25
    call.result_source = ResultSource.LIVE
    call.outcome = Outcome.OK
    return call


def all_attributes(call: CallRecord) -> dict[str, Any]:
    return {**ToolParts().start(call), **end_attributes(call)}


each_kind = pytest.mark.parametrize(
    "facts",
    [
        {},
        {"region": "eu-west", "upstream": "api.example"},
        {"call_id": "call_7", "agent": "planner", "session": "s-1"},
        {"args_hash": "v1:0123456789abcdef"},
        {"unhashed_args": ("Oslo", 3), "unhashed_kwargs": {"metric": True}},
        {"unhashed_args": (), "unhashed_kwargs": {}},
        {"breaker_state": BreakerState.CLOSED},
    ],
    ids=lambda facts: "+".join(facts) or "nothing",
)


@each_kind
def test_a_call_comes_back_from_its_tuple_as_it_was(facts: dict[str, Any]) -> None:
    tools = PlainTools()
    tools.add(TOOL)
    expected = all_attributes(ended_call(**facts))

    plain = flatten(ended_call(**facts), 2**127, 2**63, None, False)
    call = unflatten(plain, tools)

    assert all_attributes(call) == expected
    assert call.started_unix_ns == 1_700_000_000_000_000_000


@each_kind
def test_what_is_encoded_once_for_many_calls_is_what_each_would_be(
    start: Any, facts: dict[str, Any]
) -> None:
    start(region="eu-west")
    assert setup._STATE.assembly is not None
    source = setup._STATE.assembly._source
    assert source is not None
    source.tools.add(TOOL)
    pieces = ToolSpanPieces()

    for number in range(2):  # the second comes from memory
        plain = flatten(ended_call(**facts), 2**127 + number, 2**63, number or None, number == 1)
        (whole,) = source.restore(plain)
        (encoded,) = pieces.of_plain(plain, source)

        quick, thorough = SpanMessage.FromString(encoded), SpanMessage.FromString(pieces.of(whole))
        assert as_dict(quick.attributes) == as_dict(thorough.attributes)
        for message in (quick, thorough):
            del message.attributes[:]
        assert quick == thorough


def test_the_garbage_collector_soon_forgets_a_tuple() -> None:
    call = ended_call(
        breaker_state=BreakerState.CLOSED, unhashed_args=("Oslo",), unhashed_kwargs={"days": 3}
    )

    plain = flatten(call, 1, 2, 3, False)
    gc.collect()  # forgets the tuples within it
    gc.collect()

    assert not gc.is_tracked(plain)


def test_a_name_stands_for_one_tool_and_the_number_of_tools_is_bounded() -> None:
    tools = PlainTools()
    tools.add(TOOL)
    tools.add(ToolInfo("search", upstream="another"))
    for number in range(5000):
        tools.add(ToolInfo(f"tool {number}"))

    assert tools.known["search"] is TOOL
    assert len(tools.known) == 4096


def queued_kinds() -> list[type]:
    assert setup._STATE.assembly is not None
    pipeline = setup._STATE.assembly.pipeline
    assert pipeline is not None
    return [type(record) for record in pipeline.spans._queue]


@pytest.fixture
def still_collector(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans stay in the queue, where the test can look at them."""
    monkeypatch.setattr("fuseboard.telemetry.pipeline.Pipeline._start", lambda self: None)
    start(region="eu-west")


def test_a_failed_call_is_one_tuple_and_two_spans(start: Any, collector: Any) -> None:
    start(region="eu-west")

    @fuseboard.tool
    def work() -> None:
        raise ConnectionResetError("reset by peer")

    with pytest.raises(ConnectionResetError):
        work()
    assert fuseboard.flush()

    tried, called = collector.spans()
    assert (tried.name, called.name) == ("tool_attempt work", "execute_tool work")
    assert tried.parent_span_id == called.span_id
    assert tried.trace_id == called.trace_id
    assert tried.status == called.status
    assert as_dict(tried.attributes)["error.type"] == "ConnectionResetError"
    assert as_dict(called.attributes)["error.classified_as"] == "L3_transient"
    assert (tried.start_time_unix_nano, tried.end_time_unix_nano) == (
        called.start_time_unix_nano,
        called.end_time_unix_nano,
    )


def test_only_calls_of_which_nothing_more_is_known_become_tuples(still_collector: None) -> None:
    @fuseboard.tool
    def plain() -> None: ...

    @fuseboard.tool
    def priced() -> None:
        current = fuseboard.current_call()
        assert current is not None
        current.set_cost(2.0)

    @fuseboard.tool
    def dated() -> None:
        current = fuseboard.current_call()
        assert current is not None
        current.set_result_age(60)

    for function, is_plain in ((plain, True), (priced, False), (dated, False)):
        before = len(queued_kinds())
        function()
        kinds = queued_kinds()[before:]
        assert [kind is tuple for kind in kinds] == [is_plain], function


def test_two_tools_of_one_name_keep_their_own_upstream(start: Any, collector: Any) -> None:
    start(region="eu-west")
    first = fuseboard.wrap(lambda: 1, name="twin", upstream="one.example")
    second = fuseboard.wrap(lambda: 2, name="twin", upstream="two.example")

    first()
    second()
    fuseboard.flush()

    upstreams = {as_dict(span.attributes)["server.address"] for span in collector.spans()}
    assert upstreams == {"one.example", "two.example"}
    assert RUNTIME.telemetry is not None


def test_each_field_of_a_record_is_known_to_be_held_or_not() -> None:
    """A new field has to be put into the tuple, or to keep its call from becoming one."""
    of_class = {
        name
        for name, value in vars(CallRecord).items()
        if not name.startswith("__") and not callable(value) and not isinstance(value, property)
    }
    assert of_class | vars(ended_call()).keys() == {*HELD, *FOLLOWS, *NOT_SENT, *NOT_PLAIN}


@pytest.mark.parametrize("name", HELD)
def test_what_a_tuple_holds_comes_back(name: str) -> None:
    tools = PlainTools()
    tools.add(TOOL)
    call = ended_call()
    call.fault, call.outcome, call.unhashed_kwargs = FAULT, Outcome.ERROR, {}
    setattr(call, name, HELD[name])

    restored = unflatten(flatten(call, 1, 2, None, False, 3), tools)

    assert getattr(restored, name) == HELD[name]
    assert getattr(ended_call(), name) != HELD[name]


@pytest.mark.parametrize("name", sorted(NOT_PLAIN - {"attempts"}))
def test_what_no_tuple_holds_is_found_by_the_watch_of_these_tests(name: str) -> None:
    call = ended_call()
    assert lost_by_a_tuple(call) == set()
    setattr(call, name, "something")
    assert lost_by_a_tuple(call) == {name}
