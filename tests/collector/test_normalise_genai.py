"""The finer rules for foreign calls, as they come out of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuseboard import conventions as c
from fuseboard_collector.normalise.frameworks import framework_of
from fuseboard_collector.normalise.judging import judge_name
from fuseboard_collector.normalise.sampling import weight
from fuseboard_collector.receiver import otlp_json, otlp_protobuf

Rows = Callable[[str], list[dict[str, Any]]]
DATA = Path(__file__).parents[1] / "data" / "otlp"
RECORDED = sorted(path.stem for path in DATA.glob("*.pb"))


@pytest.mark.parametrize("name", RECORDED)
def test_an_export_is_the_same_in_both_encodings(name: str) -> None:
    as_json = otlp_json.decode_traces((DATA / f"{name}.json").read_bytes())
    assert as_json == otlp_protobuf.decode_traces((DATA / f"{name}.pb").read_bytes())
    assert as_json.groups


def foreign(otlp: Any, attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    given = {c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL, c.GEN_AI_TOOL_NAME: "search"}
    span = otlp.span(attributes={**given, **(attributes or {})}, **fields)
    return dict(otlp.traces(span, scope="openinference.instrumentation.langchain"))


@pytest.mark.parametrize(
    ("error_type", "status", "message", "error_class", "http_status"),
    [
        ("TimeoutError", None, "", "L3_transient", None),
        ("httpx.ReadTimeout", None, "", "L3_transient", None),
        ("timeout", None, "", "L3_transient", None),
        ("ConnectionError", None, "reset by peer", "L3_transient", None),
        ("httpx.HTTPStatusError", None, "Client error '401 Unauthorized'", "L2_access", 401),
        ("httpx.HTTPStatusError", 503, "", "L3_transient", 503),
        ("429", None, "", "L3_transient", 429),
        ("_OTHER", None, "404 Not Found for url x", "L1_input", 404),
        ("KeyError", None, "'a'", "L4_persistent", None),
        ("pydantic_core._pydantic_core.ValidationError", None, "", "L1_input", None),
        ("-32602", None, "Invalid params", "L1_input", None),
        ("-32001", None, "Request timed out", "L3_transient", None),
        ("StrangeError", None, "503 ways to fail", "unclassified", None),
        ("_OTHER", None, "ValueError: odd", "unclassified", None),
    ],
)
def test_type_and_status_decide_the_class(
    otlp: Any, send: Any, export: Rows, error_type: str, status: int | None, message: str,
    error_class: str, http_status: int | None,
) -> None:  # fmt: skip
    attributes: dict[str, Any] = {c.ERROR_TYPE: error_type}
    if status is not None:
        attributes[c.HTTP_RESPONSE_STATUS_CODE] = status
    send(foreign(otlp, attributes, status={"code": 2, "message": message}))
    (call,) = export("calls")
    assert (call["outcome"], call["error_class"]) == ("error", error_class)
    assert call["http_status"] == http_status


@pytest.mark.parametrize(
    "fields",
    [
        {"status": {"code": 2}},
        {"attributes": {c.ERROR_TYPE: "E"}},
        {"attributes": {"gen_ai.tool.status": "error"}},
        {"events": [{"name": "exception", "attributes": []}]},
    ],
)
def test_any_sign_of_failure_is_a_failure(
    otlp: Any, send: Any, export: Rows, fields: dict[str, Any]
) -> None:
    send(foreign(otlp, **fields))
    assert export("calls")[0]["outcome"] == "error"


@pytest.mark.parametrize("code", [0, 1, "STATUS_CODE_OK"])
def test_ok_and_unset_are_successes_with_a_derived_attempt(
    otlp: Any, send: Any, export: Rows, code: Any
) -> None:
    send(foreign(otlp, status={"code": code}))
    (call,) = export("calls")
    assert (call["outcome"], call["framework"]) == ("ok", "langchain")
    assert len(export("attempts")) == 1


def test_the_telling_type_wins_over_generic_ones(otlp: Any, send: Any, export: Rows) -> None:
    event = {
        "name": "exception",
        "attributes": otlp.attributes(
            {"exception.type": "httpx.HTTPStatusError", "exception.message": "429 Too Many"}
        ),
    }
    send(foreign(otlp, {c.ERROR_TYPE: "tool_error"}, events=[event]))
    (call,) = export("calls")
    assert (call["error_type"], call["http_status"]) == ("httpx.HTTPStatusError", 429)


def test_messages_are_redacted_and_lose_their_traceback(otlp: Any, send: Any, export: Rows) -> None:
    message = (
        "GET https://user:hunter2@api.test/x?key=hunter2 failed\n"
        "Traceback (most recent call last):\n  secret = hunter2"
    )
    send(foreign(otlp, status={"code": 2, "message": message}))
    found = export("calls")[0]["error_message"]
    assert "api.test" in found
    assert "hunter2" not in found
    assert "Traceback" not in found


def test_arguments_and_results_are_not_stored(otlp: Any, send: Any, rows: Rows) -> None:
    attributes = {
        c.GEN_AI_TOOL_CALL_ARGUMENTS: '{"q":"private"}', c.GEN_AI_TOOL_CALL_RESULT: "private",
        "gen_ai.tool.description": "finds things",
    }  # fmt: skip
    send(foreign(otlp, attributes))
    (row,) = rows("tool_calls")
    assert "private" not in repr(row)
    assert row["attributes"] == {"gen_ai.tool.description": "finds things"}


def test_names_of_mcp_servers_and_missing_ids(otlp: Any, send: Any, export: Rows) -> None:
    attributes = {c.GEN_AI_TOOL_NAME: "mcp__files__read", c.GEN_AI_TOOL_CALL_ID: "<not specified>",
                  "session.id": "s-1"}  # fmt: skip
    send(foreign(otlp, attributes, traceState="ot=th:c"))
    (call,) = export("calls")
    assert (call["server"], call["tool"]) == ("files", "read")
    assert (call["call_id"], call["session"], call["weight"]) == (None, "s-1", 4.0)


def test_the_name_may_be_in_the_span_name_only(otlp: Any, send: Any, export: Rows) -> None:
    send(foreign(otlp, {c.GEN_AI_TOOL_NAME: ""}, name="execute_tool look_up"))
    assert export("calls")[0]["tool"] == "look_up"


def test_a_group_of_results_is_no_call(otlp: Any, send: Any, export: Rows, rows: Rows) -> None:
    send(foreign(otlp, {c.GEN_AI_TOOL_NAME: "(merged tools)"}))
    assert export("calls") == []
    assert len(rows("spans")) == 1


@pytest.mark.parametrize(
    ("trace_state", "expected"),
    [
        ("", 1.0),
        ("ot=th:0", 1.0),
        ("ot=th:8", 2.0),
        ("ot=th:c", 4.0),
        ("vendor=1,ot=rv:1234;th:e,other=2", 8.0),
        ("ot=rv:00000000000008", 1.0),
        ("ot=th:xyz", 1.0),
        ("other=th:8", 1.0),
    ],
)
def test_weights(trace_state: str, expected: float) -> None:
    assert weight(trace_state) == expected


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("opentelemetry.instrumentation.genai.langchain", "langchain"),
        ("openinference.instrumentation.openai_agents", "openai_agents"),
        ("opentelemetry.instrumentation.crewai.v2", "crewai"),
        ("gcp.vertex.agent", "google_adk"),
        ("my.own.scope", "my.own.scope"),
        ("", None),
    ],
)
def test_frameworks(scope: str, expected: str | None) -> None:
    assert framework_of(scope) == expected


@pytest.mark.parametrize("name", ["", ".", "a.b.", "SystemExit", "type", "1", "x" * 500, "äöü"])
def test_any_name_can_be_judged(name: str) -> None:
    assert judge_name(name).error_class in c.ErrorClass


def test_a_span_that_the_shim_marked_is_context_because_its_call_has_been_counted(
    otlp: Any, send: Any, export: Rows, rows: Rows
) -> None:
    send(foreign(otlp, {c.DUPLICATE: True}, name="execute_tool search"))
    assert export("calls") == []
    assert [row["name"] for row in rows("spans")] == ["execute_tool search"]
    send(foreign(otlp, {c.DUPLICATE: False}, name="execute_tool search", spanId="b" * 16))
    assert len(export("calls")) == 1
