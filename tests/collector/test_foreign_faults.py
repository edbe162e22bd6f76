"""Every failure in the recorded exports against a table that was filled in by reading them."""

from __future__ import annotations

import builtins
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assembled_exports import Stage, spans_of, whole
from recorded_exports import RECEIVED, recordings

from fuseboard import conventions as c
from fuseboard.classification.chain import judge_exception
from fuseboard.classification.naming import known_names
from fuseboard.record import Fault
from fuseboard_collector.normalise.dialects import genai, langfuse
from fuseboard_collector.normalise.faults import fault_of
from fuseboard_collector.normalise.incoming import ERROR_STATUS, Event, IncomingSpan, Source
from fuseboard_collector.normalise.judging import judge_name
from fuseboard_collector.store.rows import Attempt

REVIEWED = json.loads(
    (Path(__file__).parents[1] / "data" / "otlp" / "error_classes.json").read_text()
)
# What the OpenAI Agents SDK says instead.
NOTHING = "Error details are redacted"
FAILED = [(name, number, item) for name, r in recordings().items() for number, item in r.failures()]


def test_every_failure_with_a_span_has_been_reviewed() -> None:
    assert len(FAILED) >= 281
    reviewed = {(name, int(number)) for name, entries in REVIEWED.items() for number in entries}
    assert {(name, number) for name, number, _ in FAILED} == reviewed
    classes = {entry["class"] for entries in REVIEWED.values() for entry in entries.values()}
    assert classes <= {*map(str, c.ErrorClass), None}
    assert all(entry["why"] for entries in REVIEWED.values() for entry in entries.values())


def attempts_of(name: str) -> list[tuple[str, dict[str, Any], Attempt | None]]:
    """Return the entries of what failed, each with the row of its failed attempt, if any."""
    rows = [row for found in whole(name).assembled.values() for row in found.attempts]
    failed = {row.span_id: row for row in rows if row.result == "failure"}
    return [
        (str(number), item, next((failed[i] for i in spans_of(item) if i in failed), None))
        for number, item in recordings()[name].failures()
    ]


@pytest.mark.parametrize("name", REVIEWED)
def test_the_class_of_a_failure_is_what_a_careful_reader_gives_it(name: str) -> None:
    found = {number: row and row.error_class for number, _, row in attempts_of(name)}
    assert found == {number: entry["class"] for number, entry in REVIEWED[name].items()}


@pytest.mark.parametrize("name", REVIEWED)
def test_the_type_and_the_status_of_a_failure_are_read_where_they_are(name: str) -> None:
    for _, item, row in attempts_of(name):
        if item["outcome_from"] in ("flag", "result"):
            assert row is not None
        if row is not None and item.get("error_type_from") in ("attribute", "text"):
            assert (row.error_type or "").rpartition(".")[2] == item["error_type"]
        if item.get("http_status_from") in ("attribute", "text"):
            assert row is not None
            assert row.http_status == item["http_status"]


@pytest.mark.parametrize("name", REVIEWED)
def test_the_message_of_a_failure_is_what_the_tool_said(name: str) -> None:
    calls = whole(name).calls()
    for _, item, row in attempts_of(name):
        call = calls.get(item["span_id"])
        # The SDK cancels what timed out, and tells its own story of it.
        is_told = item["error_message"] and item["error_type"] != "timeout"
        if row is not None and call is not None and call.error_message and is_told:
            assert item["error_message"] in call.error_message or NOTHING in call.error_message


def failed_span(
    error_type: object = None, message: str = "", exception: dict[str, Any] | None = None,
    **attributes: Any,
) -> IncomingSpan:  # fmt: skip
    given = {} if error_type is None else {c.ERROR_TYPE: error_type}
    return IncomingSpan(
        "1" * 32,
        "2" * 16,
        name="execute_tool search",
        attributes={**given, **attributes},
        status_code=ERROR_STATUS,
        status_message=message,
        events=[] if exception is None else [Event("exception", exception)],
    )


def judged(*told: Any, **attributes: Any) -> tuple[str | None, int, str, int | None]:
    fault = fault_of(failed_span(*told, **attributes), genai.DIALECT, "search")
    assert fault is not None
    return fault.error_type, fault.evidence, fault.verdict.error_class.value, fault.http_status


STACK = """Traceback (most recent call last):
  File "site-packages/server.py", line 10, in call
    return inner()
           ^^^^^^^
httpx.ReadTimeout: slow
second line: of the message

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "site-packages/server.py", line 20, in run
fastmcp.exceptions.ToolError: Error calling tool 'search': slow
"""


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        # Attributes first; a qualified name beats the bare one of the same class.
        (("HTTPStatusError", "503", {"exception.type": "httpx.HTTPStatusError"}),
         ("httpx.HTTPStatusError", 3, "L3_transient", 503)),
        (("builtins.KeyError", "'a'"), ("builtins.KeyError", 3, "L4_persistent", None)),
        (("-32601", "Method not found", {"exception.type": "mcp.McpError"}),
         ("-32601", 3, "L1_input", None)),
        # A wrapper gives way to what it was raised from, or to the name that its words begin with.
        (("tool_error", "slow", {"exception.type": "fastmcp.exceptions.ToolError",
                                 "exception.stacktrace": STACK}),
         ("httpx.ReadTimeout", 2, "L3_transient", None)),
        ((None, "", {"exception.type": "Exception",
                     "exception.message": 'KeyError("a")Traceback (most recent call last):\n x'}),
         ("KeyError", 2, "L4_persistent", None)),
        ((None, "", {"exception.type": "Exception",
                     "exception.message": 'Odd("a")Traceback (most recent call last):\n x'}),
         ("Odd", 2, "unclassified", None)),
        (("_OTHER", "Error executing tool search: ssl.SSLCertVerificationError: expired"),
         ("ssl.SSLCertVerificationError", 2, "L4_persistent", None)),
        # A request that timed out, whatever MCP's libraries call it.
        (("-32001", "Request timed out"), ("timeout", 3, "L3_transient", None)),
        (("McpError", "Timed out while waiting"), ("timeout", 3, "L3_transient", None)),
        (("McpError", "Session terminated"), ("McpError", 3, "unclassified", None)),
        # Who is to blame may be told by the words only.
        (("_OTHER", "3 validation errors for search\nq\n  Field required"),
         ("invalid_arguments", 2, "L1_input", None)),
        (("RuntimeError", "Tool 'search' not found"), ("RuntimeError", 3, "L1_input", None)),
        (("TypeError", "search() missing 1 required positional argument: 'q'"),
         ("TypeError", 3, "L1_input", None)),
        (("TypeError", "parse() missing 1 required positional argument: 'q'"),
         ("TypeError", 3, "L4_persistent", None)),
        # Statuses: of the attribute, of the type, of the words.
        (("429", ""), ("429", 3, "L3_transient", 429)),
        (("429", "insufficient_quota: You exceeded your quota"), ("429", 3, "L2_access", 429)),
        (("RateLimitError", "quota: {'code': 'insufficient_quota'}"),
         ("RateLimitError", 3, "L2_access", None)),
        (("openai.RateLimitError", "Error code: 429 - {'error': {'code': 'rate_limit_exceeded'}}"),
         ("openai.RateLimitError", 3, "L3_transient", 429)),
        (("Exception", "context_length_exceeded"), ("Exception", 1, "L1_input", None)),
        (("sk-12345678901234567890", ""), ("***", 3, "unclassified", None)),
        (("Error", "Request failed with status code 403"), ("Error", 1, "L2_access", 403)),
        (("AI_APICallError", "Service Unavailable"), ("AI_APICallError", 3, "L3_transient", 503)),
        (("_OTHER", "we have 404 of them"), ("_OTHER", 1, "unclassified", None)),
        (("HTTPError", "HTTP/1.1 500"), ("HTTPError", 3, "L3_transient", 500)),
        # Codes of other systems.
        (("UNAVAILABLE", ""), ("UNAVAILABLE", 3, "L3_transient", None)),
        (("PERMISSION_DENIED", ""), ("PERMISSION_DENIED", 3, "L2_access", None)),
        (("ECONNREFUSED", ""), ("ECONNREFUSED", 3, "L3_transient", None)),
        (("ENOTFOUND", ""), ("ENOTFOUND", 3, "L4_persistent", None)),
        (("insufficient_quota", ""), ("insufficient_quota", 3, "L2_access", None)),
        (("Error", "getaddrinfo EAI_AGAIN api.test"), ("Error", 1, "L3_transient", None)),
        # Bare names of classes that the shim knows with their module.
        (("ReadTimeout", ""), ("ReadTimeout", 3, "L3_transient", None)),
        (("JSONDecodeError", ""), ("JSONDecodeError", 3, "L5_semantic", None)),
        (("RateLimitError", ""), ("RateLimitError", 3, "L3_transient", None)),
        (("AuthenticationError", ""), ("AuthenticationError", 3, "L2_access", None)),
        (("HTTPStatusError", "no more than this"), ("HTTPStatusError", 3, "unclassified", None)),
        # What only gives the direction, until the words of the system say more.
        (("httpx.ConnectError", ""), ("httpx.ConnectError", 3, "L3_transient", None)),
        (("httpx.ConnectError", "[Errno -2] Name or service not known"),
         ("httpx.ConnectError", 3, "L4_persistent", None)),
        (("OSError", "Connection refused"), ("OSError", 3, "L3_transient", None)),
        (("ValueError", "Connection refused"), ("ValueError", 3, "unclassified", None)),
        # Nothing told, and an attribute of a type that nobody expects.
        ((None, ""), (None, 0, "unclassified", None)),
        ((["a", "list"], "x"), ('["a","list"]', 3, "unclassified", None)),
        ((404, ""), ("404", 3, "L1_input", 404)),
    ],
)  # fmt: skip
def test_what_is_made_of_what_a_span_says(told: tuple[Any, ...], expected: object) -> None:
    assert judged(*told) == expected


def test_a_status_in_an_attribute_beats_every_word() -> None:
    fault = fault_of(
        failed_span("ValueError", "404 Not Found", **{c.HTTP_RESPONSE_STATUS_CODE: 503}),
        genai.DIALECT,
    )
    assert fault is not None
    assert (fault.http_status, fault.status_is_guess) == (503, False)
    assert fault.verdict.error_class is c.ErrorClass.L3_TRANSIENT


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        ("ValueError: no such id", "no such id"),
        ("ValueError", None),
        ("ValueError('no such id')", "no such id"),
        ("plain (words)", "plain (words)"),
        ("{'message': 'Error', 'data': {'tool_name': 'x', 'error': 'no such id'}}", "no such id"),
        ('{"message": "Error", "data": {"error": "no such id"}}', "no such id"),
        ("no such id\nTraceback (most recent call last):\n  File 'x'", "no such id"),
        ("no such id\n    at run (app.mjs:1:2)", "no such id"),
        ("refused [input_value={'q': 'private'}, input_type=dict]", "refused [input_type=dict]"),
        ("call with api_key=sk-12345678901234567890", "call with api_key=***"),
        ("a\0b", "a�b"),
        ("x" * 100_000, "x" * 511 + "…"),
    ],
)
def test_the_stored_message_is_plain_bounded_and_redacted(message: str, stored: str | None) -> None:
    fault = fault_of(failed_span("ValueError", message), genai.DIALECT)
    assert fault is not None
    assert fault.message == stored


FLAGGED = [
    {"isError": True, "content": [{"type": "text", "text": "closed"}]},
    {"result": "closed", "is_error": True},
    {"output": {"content": "closed", "type": "tool", "tool_call_id": "c", "status": "error"}},
    {"output": {"lc": 1, "kwargs": {"content": "closed", "type": "tool", "status": "error"}}},
    {"toolUseId": "t", "status": "error", "content": [{"text": "closed"}]},
    {"response": {"response_type": "ERROR_HANDLED_BY_REFLECT_AND_RETRY_PLUGIN",
                  "error_details": "closed"}},
]  # fmt: skip


@pytest.mark.parametrize("result", FLAGGED)
@pytest.mark.parametrize("sent", [lambda r: r, json.dumps, lambda r: json.dumps(json.dumps(r))])
def test_a_flag_in_the_result_is_a_failure_however_it_is_quoted(result: Any, sent: Any) -> None:
    span = IncomingSpan("1" * 32, "2" * 16, attributes={c.GEN_AI_TOOL_CALL_RESULT: sent(result)})
    fault = fault_of(span, genai.DIALECT)
    assert fault is not None
    assert (fault.error_type, fault.evidence, fault.message) == ("tool_error", 1, "closed")
    assert fault.verdict.error_class is c.ErrorClass.L5_SEMANTIC


def test_a_printed_message_of_langchain_has_its_flag_too() -> None:
    printed = "content='closed' name='refund' tool_call_id='call_1' status='error'"
    span = IncomingSpan("1" * 32, "2" * 16, attributes={c.GEN_AI_TOOL_CALL_RESULT: printed})
    fault = fault_of(span, genai.DIALECT)
    assert fault is not None
    assert fault.message == "closed"


@pytest.mark.parametrize(
    "result",
    [
        {"error": "index unavailable"}, {"isError": False, "content": "Error"}, "Error: no",
        {"is_error": "true"}, {"status": "error"}, '{"isError": true', [{"error": 1}, {}],
        {"data": {"isError": True}}, "an error, isError", '"' * 10, {"a": "x" * 300_000 + "rror"},
    ],
)  # fmt: skip
def test_words_and_fields_that_nobody_flagged_are_no_failure(result: Any) -> None:
    span = IncomingSpan("1" * 32, "2" * 16, attributes={c.GEN_AI_TOOL_CALL_RESULT: result})
    assert fault_of(span, genai.DIALECT) is None


def test_a_dialect_keeps_its_flag_and_its_message_elsewhere() -> None:
    span = IncomingSpan(
        "1" * 32,
        "2" * 16,
        attributes={
            "langfuse.observation.level": "ERROR",
            "langfuse.observation.status_message": "connection refused",
        },
    )
    fault = fault_of(span, langfuse.DIALECT)
    assert fault is not None
    assert (fault.error_type, fault.message) == (None, "connection refused")
    assert fault.verdict.classifier_id == "message_matcher"
    assert fault_of(span, genai.DIALECT) is None


N = 20_000
SLOW_IF_DONE_BADLY = [
    "\n" * N, "\n " * (N // 2), "x" + " " * N, "a." * (N // 2), "A(" * (N // 2), "A(" + ") " * N,
    ("status" + " " * 4000) * 5, "tool " + "a" * N, "4" * N, "a_" * (N // 2), "{" * N + '"error"}',
    "{'error': " + "[" * 3000 + "}", '\n  File "a", line 1' * 1000, "a() " * (N // 4),
    "\n at " + ":" * N,
    "The above exception was the direct cause of the following exception:" * 300,
    "api_key=" * 2500,
]  # fmt: skip


@pytest.mark.parametrize("text", SLOW_IF_DONE_BADLY, ids=lambda text: repr(text[:12]))
def test_no_message_takes_long(text: str) -> None:
    began = time.thread_time()
    for error_type in ("HTTPError", "Exception"):
        exception = {"exception.type": error_type, "exception.message": text,
                     "exception.stacktrace": text}  # fmt: skip
        judged(error_type, text, exception, **{c.GEN_AI_TOOL_CALL_RESULT: text})
    # About 3 ms each; what these texts would cost a quadratic pattern is seconds.
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("error_type", "outcome"),
    [
        ("CancelledError", "cancelled"),
        ("asyncio.exceptions.CancelledError", "cancelled"),
        ("KeyboardInterrupt", "cancelled"),
        ("AbortError", "cancelled"),
        ("GraphInterrupt", "interrupted"),
        ("pydantic_ai.exceptions.ApprovalRequired", "interrupted"),
        ("GeneratorExit", "abandoned"),
        ("pydantic_ai.exceptions.ModelRetry", "error"),
        ("TimeoutError", "error"),
    ],
)
def test_control_flow_is_no_fault_of_the_tool(error_type: str, outcome: str) -> None:
    stage = Stage()
    span = failed_span(error_type, "stopped", **{"gen_ai.operation.name": "execute_tool"})
    stage.take([(Source({}), replace(span, start_ns=RECEIVED * 1000, end_ns=RECEIVED * 1000))])
    (call,) = stage.calls().values()
    assert call.outcome == outcome
    told = (call.error_class, call.error_type, call.error_message, call.classifier_id)
    assert (told == (None,) * 4) == (outcome != "error")
    (found,) = stage.assembled.values()
    (attempt,) = found.attempts
    assert (attempt.result, attempt.error_class is None) == ("failure", outcome != "error")


# The status decides; without it the shim takes it for a redirect, which nobody knows here.
UNDECIDED = {"httpx.HTTPStatusError", "httpx2.HTTPStatusError"}


@pytest.mark.parametrize("name", sorted(known_names() - UNDECIDED))
def test_every_name_that_the_shim_knows_is_judged_here_too(name: str) -> None:
    assert judge_name(name).error_class is not c.ErrorClass.UNCLASSIFIED


BUILTIN = [
    kind for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
    and not issubclass(kind, (BaseExceptionGroup, UnicodeError))
]  # fmt: skip


@pytest.mark.parametrize("kind", BUILTIN, ids=lambda kind: kind.__name__)
def test_a_builtin_has_the_class_that_it_has_where_it_is_raised(kind: type[Exception]) -> None:
    judged_there = judge_exception(kind(), 0.0)
    assert isinstance(judged_there, Fault)
    assert judge_name(kind.__name__) == judged_there.verdict
