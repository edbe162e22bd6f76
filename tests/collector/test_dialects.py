"""What single foreign spans are taken for: calls or not, and of which tool, server and session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from assembled_exports import whole
from recorded_exports import RECEIVED, recordings

from fuseboard import conventions as c
from fuseboard_collector.normalise import layouts
from fuseboard_collector.normalise.dialects import recognising
from fuseboard_collector.normalise.incoming import Event, IncomingSpan, Source, Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.store.rows import Sighting, Span

CALL = {c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL}


def row_of(
    attributes: dict[str, Any], name: str = "execute_tool search", scope: str = "some.scope",
    resource: dict[str, Any] | None = None, **fields: Any,
) -> Sighting | Span:  # fmt: skip
    span = IncomingSpan("1" * 32, "2" * 16, name=name, attributes=attributes, **fields)
    batch = normalise_traces(Traces([(Source(resource or {}, scope), [span])]), RECEIVED)
    (row,) = (*batch.sightings, *batch.spans)
    return row


def sighting_of(attributes: dict[str, Any], **fields: Any) -> Sighting:
    row = row_of(attributes, **fields)
    assert isinstance(row, Sighting)
    return row


# --- every dialect -----------------------------------------------------------------------------

MARKED: list[tuple[str, dict[str, Any], str, str]] = [
    ("genai", {**CALL, "gen_ai.tool.name": "search"}, "execute_tool search", "new.sdk"),
    ("genai", CALL, "execute_tool search", "new.sdk"),
    ("genai", {"gen_ai.tool.name": "search"}, "execute_tool search", "old.sdk"),
    ("mcp", {"mcp.method.name": "tools/call"}, "MCP send tools/call search", "mcp-python-sdk"),
    ("mcp", {"mcp.method.name": "tools/call", "gen_ai.tool.name": "search"}, "x", "unknown"),
    ("openinference", {"openinference.span.kind": "TOOL", "tool.name": "search"}, "x", "my.app"),
    ("openinference", {"openinference.span.kind": "TOOL"}, "search.run", "my.app"),
    ("openllmetry", {"traceloop.span.kind": "tool", "traceloop.entity.name": "search"}, "x", "y"),
    ("openllmetry", {"traceloop.span.kind": "tool"}, "search.tool", "traceloop.tracer"),
    ("pydantic_ai", {"gen_ai.tool.name": "search"}, "running tool", "pydantic-ai"),
    ("logfire_openai_agents", {"name": "search"}, "Function: {name}", "logfire.openai_agents"),
    ("logfire_mcp", {"request": '{"params":{"name":"search"}}'},
     "MCP server handle request: tools/call", "logfire.mcp"),
    ("logfire_mcp", {"rpc.method": "tools/call"}, "MCP request: tools/call search", "logfire.mcp"),
    ("langfuse", {"langfuse.observation.type": "tool"}, "search", "langfuse-sdk"),
    ("langsmith", {"langsmith.span.kind": "tool"}, "search", "langsmith"),
    ("mlflow", {"mlflow.spanType": '"TOOL"', "mlflow.spanFunctionName": '"search"'}, "x", "y"),
    ("vercel_ai", {"ai.toolCall.name": "search"}, "ai.toolCall", "ai"),
    ("strands", {**CALL, "gen_ai.tool.name": "search"}, "x", "strands.telemetry.tracer"),
    ("google_adk", {**CALL, "gen_ai.tool.name": "search"}, "x", "gcp.vertex.agent"),
    ("agent_framework", {**CALL, "gen_ai.tool.name": "search"}, "x", "agent_framework"),
    ("agent_framework", {**CALL, "gen_ai.tool.name": "search"}, "x", "autogen-core"),
    ("semantic_kernel", {**CALL, "gen_ai.tool.name": "web-search"}, "x", "semantic_kernel.a.b"),
    ("crewai", {"openinference.span.kind": "TOOL", "tool.name": "search"}, "x",
     "openinference.instrumentation.crewai._event_listener"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "attributes", "name", "scope"), MARKED)
def test_a_call_is_recognised_in_every_dialect(
    dialect: str, attributes: dict[str, Any], name: str, scope: str
) -> None:
    row = sighting_of(attributes, name=name, scope=scope)
    assert (row.dialect, row.tool) == (dialect, "search")
    assert row.instrumentation == scope


NO_CALLS: list[tuple[dict[str, Any], str, str]] = [
    ({**CALL, "gen_ai.tool.name": "(merged tools)"}, "execute_tool (merged)", "gcp.vertex.agent"),
    ({"openinference.span.kind": "TOOL"}, "handoff to billing",
     "openinference.instrumentation.openai_agents"),
    ({"openinference.span.kind": "TOOL", "tool.name": "final_answer"}, "FinalAnswerTool",
     "openinference.instrumentation.smolagents"),
    ({**CALL, "gen_ai.tool.name": "final_result",
      "logfire.msg": "running output function: final_result"}, "execute_tool final_result",
     "pydantic-ai"),
    ({**CALL, "gen_ai.tool.name": "final_result"}, "running output function", "pydantic-ai"),
    ({"mcp.method.name": "tools/list"}, "tools/list", "fastmcp"),
    ({"mcp.method.name": "server/discover"}, "server/discover", "fastmcp"),
    ({"rpc.method": "tools/list"}, "MCP request: tools/list", "logfire.mcp"),
    ({c.GEN_AI_OPERATION_NAME: "create_agent"}, "create_agent x", "x"),
    ({c.GEN_AI_OPERATION_NAME: ["execute_tool"]}, "odd", "x"),
    ({"openinference.span.kind": "AGENT", "tool.name": "search"}, "x", "x"),
    ({**CALL, "gen_ai.tool.name": "search", c.DUPLICATE: True}, "execute_tool search", "x"),
    ({}, "execute_tool search", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "name", "scope"), NO_CALLS)
def test_what_is_no_call_is_context(attributes: dict[str, Any], name: str, scope: str) -> None:
    row = row_of(attributes, name=name, scope=scope)
    assert isinstance(row, Span)
    assert row.name == name


def test_the_last_answer_is_a_tool_like_any_other_elsewhere() -> None:
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "final_answer"}
    assert sighting_of(attributes, scope="my.app").tool == "final_answer"


# --- the page of documentation ------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "other-instrumentation.md"
DOCUMENTED = re.findall(r"^\| .* \| `(\w+)` \| `([\w.]+)=(\S+)` \|", PAGE.read_text(), re.MULTILINE)
# Read by its scope only: a mark says no more than that it follows GenAI conventions or the like.
SCOPES = {
    "agent_framework": "agent_framework",
    "crewai": "openinference.instrumentation.crewai",
    "google_adk": "gcp.vertex.agent",
    "openai_agents": "openinference.instrumentation.openai_agents",
    "pydantic_ai": "pydantic-ai",
    "semantic_kernel": "semantic_kernel.functions",
    "smolagents": "openinference.instrumentation.smolagents",
    "strands": "strands.telemetry.tracer",
}


@pytest.mark.parametrize(("dialect", "mark", "value"), DOCUMENTED)
def test_the_page_says_what_marks_a_call(dialect: str, mark: str, value: str) -> None:
    row = sighting_of({mark: value}, name="search", scope=SCOPES.get(dialect, "any"))
    assert row.dialect == dialect


def test_the_page_has_every_dialect() -> None:
    known = {d.name for _, dialects in recognising._MARKS for d in dialects.values()}
    known |= {d.name for d in recognising._SCOPES.values()}
    known |= {d.name for d in recognising._SCOPE_PREFIXES.values()}
    # Has no mark: the names of its spans are templates.
    assert known - {"logfire_openai_agents"} == {dialect for dialect, _, _ in DOCUMENTED}


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tool", "server"),
    [
        ("mcp__files__read", "read", "files"),
        ("mcp__files__read__all", "read__all", "files"),
        ("mcp__files", "mcp__files", None),
        ("mcp____read", "mcp____read", None),
        ("web-search", "web-search", None),
    ],
)
def test_a_server_in_a_tools_name(name: str, tool: str, server: str | None) -> None:
    row = sighting_of({**CALL, "gen_ai.tool.name": name})
    assert (row.tool, row.server) == (tool, server)


def test_a_plugin_of_semantic_kernel_is_a_server() -> None:
    row = sighting_of({**CALL, "gen_ai.tool.name": "web-find-all"}, scope="semantic_kernel.x")
    assert (row.tool, row.server, row.framework) == ("find-all", "web", "semantic_kernel")


def test_a_server_that_tells_its_name_is_believed() -> None:
    attributes = {**CALL, "gen_ai.tool.name": "mcp__alias__read", "fastmcp.server.name": "files"}
    row = sighting_of(attributes, scope="fastmcp")
    assert (row.tool, row.server) == ("read", "files")


@pytest.mark.parametrize(
    ("scope", "attributes", "call_id"),
    [
        ("x", {**CALL, "gen_ai.tool.call.id": "c-1"}, "c-1"),
        ("gcp.vertex.agent", {**CALL, "gen_ai.tool.call.id": "<not specified>"}, None),
        ("x", {"openinference.span.kind": "TOOL", "tool_call.id": "c-1"}, "c-1"),
        ("x", {"openinference.span.kind": "TOOL", "output.value": '{"tool_call_id":"c-1"}'}, "c-1"),
        ("x", {"openinference.span.kind": "TOOL", "output.value": '["tool_call_id"]'}, None),
        ("x", {"openinference.span.kind": "TOOL", "output.value": '{"tool_call_id":'}, None),
        ("x", {"langfuse.observation.type": "tool",
               "langfuse.observation.metadata.tool_call_id": '"c-1"'}, "c-1"),
        ("x", {"mcp.method.name": "tools/call", "jsonrpc.request.id": "3"}, None),
    ],
)  # fmt: skip
def test_the_models_id_of_a_call(scope: str, attributes: dict[str, Any], call_id: str) -> None:
    assert sighting_of(attributes, scope=scope).call_id == call_id


def test_a_tool_without_any_name_has_the_name_of_others() -> None:
    assert sighting_of(CALL, name="execute_tool").tool == c.OTHER_LABEL
    assert sighting_of({"mcp.method.name": "tools/call"}, name="tools/call").tool == c.OTHER_LABEL


# --- what else a span says ---------------------------------------------------------------------


def test_the_number_of_an_attempt_is_that_of_the_framework_not_of_the_model() -> None:
    scope = "openinference.instrumentation.crewai"
    attributes: dict[str, Any] = {"openinference.span.kind": "TOOL", "tool.name": "search"}
    assert sighting_of({**attributes, "tool.run_attempts": 2}, scope=scope).attempt_number == 2
    assert sighting_of({**attributes, "tool.run_attempts": "x"}, scope=scope).attempt_number is None
    asked = {**CALL, "gen_ai.tool.name": "search", "pydantic_ai.tool.retry.attempt": 2}
    assert sighting_of(asked, scope="pydantic-ai").attempt_number is None


def test_arguments_and_results_of_old_conventions_are_in_events() -> None:
    asked = Event("gen_ai.tool.message", {"content": '{"q": 1}'})
    answered = Event("gen_ai.choice", {"message": '[{"text": "a"}]'})
    by_event = sighting_of({**CALL, "gen_ai.tool.name": "s"}, events=[asked, answered])
    by_attribute = sighting_of(
        {**CALL, "gen_ai.tool.name": "s", "gen_ai.tool.call.arguments": '{"q":1}'}
    )
    assert by_event.args_hash == by_attribute.args_hash
    assert (by_event.args_hash or "").startswith("v1:")


def test_arguments_that_have_no_names_can_be_compared_but_not_looked_up() -> None:
    attributes = {"openinference.span.kind": "TOOL", "input.value": "Lisbon"}
    row = sighting_of(attributes)
    assert row.args_hash is not None
    assert row.args_hash.startswith("raw:")
    assert row.args_hash == sighting_of(attributes).args_hash
    assert row.args_hash != sighting_of({**attributes, "input.value": "Oslo"}).args_hash
    assert sighting_of({"openinference.span.kind": "TOOL"}).args_hash is None


@pytest.mark.parametrize(
    ("attributes", "session", "agent"),
    [
        ({"gen_ai.conversation.id": "a", "session.id": "b"}, "a", None),
        ({"langsmith.metadata.thread_id": "t", "langsmith.metadata.session_id": "s"}, "t", None),
        ({"traceloop.association.properties.session_id": "s"}, "s", None),
        ({"langfuse.trace.metadata.session_id": '"s"'}, "s", None),
        ({"gen_ai.conversation.id": "", "session.id": "b"}, "b", None),
        ({"tool.agent_role": "r", "gen_ai.agent.name": "n"}, None, "n"),
        ({"ai.telemetry.functionId": "f", "ai.telemetry.metadata.sessionId": "s"}, "s", "f"),
    ],
)
def test_session_and_agent_have_many_names(
    attributes: dict[str, Any], session: str | None, agent: str | None
) -> None:
    for row in (row_of(attributes), row_of({**attributes, **CALL})):
        assert (row.session, row.agent) == (session, agent)


@pytest.mark.parametrize(
    ("attributes", "name", "operation", "agent"),
    [
        ({c.GEN_AI_OPERATION_NAME: "chat"}, "chat gpt", "chat", None),
        ({c.GEN_AI_OPERATION_NAME: "invoke_agent"}, "invoke_agent bot", "invoke_agent", "bot"),
        ({"openinference.span.kind": "LLM"}, "ChatOpenAI", "chat", None),
        ({"openinference.span.kind": "AGENT"}, "bot.run", "invoke_agent", "bot"),
        ({"openinference.span.kind": "CHAIN"}, "RunnableSequence", None, None),
        ({"traceloop.span.kind": "agent"}, "bot.agent", "invoke_agent", "bot"),
        ({"mlflow.spanType": '"CHAT_MODEL"'}, "ChatOpenAI", "chat", None),
        ({"ai.operationId": "ai.streamText.doStream"}, "ai.streamText.doStream", "chat", None),
        ({"ai.operationId": "ai.streamText"}, "ai.streamText", "invoke_agent", None),
        ({"langfuse.observation.type": "generation"}, "x", "chat", None),
        ({"logfire.msg_template": "Agent run: {name!r}"}, "Agent run: {name!r}", "invoke_agent",
         None),
        ({"logfire.msg_template": "Something of the user's"}, "x", None, None),
    ],
)  # fmt: skip
def test_operations_of_others_have_the_names_of_conventions(
    attributes: dict[str, Any], name: str, operation: str | None, agent: str | None
) -> None:
    row = row_of(attributes, name=name)
    assert isinstance(row, Span)
    assert (row.operation, row.agent) == (operation, agent)


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3}, (12, 3)),
        ({"llm.token_count.prompt": 12, "llm.token_count.completion": 3}, (12, 3)),
        ({"ai.usage.promptTokens": 12.0, "ai.usage.completionTokens": 3}, (12, 3)),
        ({"gen_ai.usage.input_tokens": -1}, (0, None)),
        ({"gen_ai.usage.input_tokens": "many"}, (None, None)),
        ({"gen_ai.usage.input_tokens": 1e300}, (2**53, None)),
    ],
)
def test_tokens_and_status_are_columns(attributes: dict[str, Any], tokens: Any) -> None:
    row = row_of({**attributes, "http.response.status_code": 503}, name="chat")
    assert isinstance(row, Span)
    assert (row.input_tokens, row.output_tokens) == tokens
    assert row.http_status == 503


@pytest.mark.parametrize(
    ("resource", "attributes", "environment", "region"),
    [
        ({"deployment.environment.name": "live", "cloud.region": "eu"}, {}, "live", "eu"),
        ({"deployment.environment": "live"}, {"cloud.region": "us"}, "live", "us"),
        ({"langfuse.environment": "live"}, {}, "live", None),
        ({}, {"langfuse.environment": "live"}, "live", None),
        ({"cloud.region": "eu"}, {"cloud.region": "us"}, None, "us"),
    ],
)
def test_environment_and_region(
    resource: dict[str, Any], attributes: dict[str, Any], environment: str, region: str
) -> None:
    row = sighting_of({**CALL, **attributes}, resource=resource)
    assert (row.environment, row.region) == (environment, region)


def test_the_memory_of_layouts_is_bounded() -> None:
    for number in range(5000):
        layouts.layout_of({f"name{number}": 1})
    assert len(layouts._known) <= layouts._MAX_LAYOUTS
    before = len(layouts._known)
    assert layouts.layout_of({"x" * 100_000: 1}).facts
    assert len(layouts._known) == before


# --- recorded exports ----------------------------------------------------------------------------

# Family of recordings → what all of its calls within an agent have, as its application set it.
TOLD: dict[str, tuple[str, str | None, str | None]] = {
    "agent-framework-native": ("agent_framework", None, "support_bot"),
    "agno-otelgenai": ("agno", "session-7", "support_bot"),
    "ai-sdk-v5": ("vercel_ai", "session-7", "support-bot"),
    "ai-sdk-v7": ("vercel_ai", None, "support-bot"),
    "crewai-openinference": ("crewai", None, "support bot"),
    "decorators-traceloop-sdk": ("traceloop", "session-7", "support_agent"),
    "decorators-mlflow": ("mlflow", None, "support_agent"),
    "google-adk-native": ("google_adk", "session-7", "support_bot"),
    "google-adk-openinference": ("google_adk", "session-7", "support_bot"),
    "llama-index-otelgenai": ("llama_index", None, "support_bot"),
    "mcp-native": ("mcp", None, None),
    "smolagents-openinference": ("smolagents", None, "support_bot"),
    "strands-native": ("strands", "session-7", "support_bot"),
    "strands-native-latest": ("strands", "session-7", "support_bot"),
}


@pytest.mark.parametrize("name", [n for n in recordings() if n.partition("/")[0] in TOLD])
def test_calls_have_the_session_and_agent_that_their_application_set(name: str) -> None:
    expected = TOLD[name.partition("/")[0]]
    for call in whole(name).calls().values():
        assert (call.framework, call.session, call.agent) == expected


@pytest.mark.parametrize("emitter", ["langfuse", "langsmith"])
def test_behind_a_general_exporter_the_framework_is_told_where_it_shows(emitter: str) -> None:
    found = {
        name: {call.framework for call in whole(name).calls().values()}
        for name in recordings()
        if name.startswith((f"langchain-{emitter}/", f"decorators-{emitter}"))
    }
    agents = [name for name in found if name.startswith("langchain-") and "/direct" not in name]
    assert len(agents) >= 6
    assert {name for name in found if found[name] == {"langchain"}} >= set(agents)
    assert all(found[name] == {emitter} for name in found if name.startswith("decorators-"))


@pytest.mark.parametrize("name", [n for n in recordings() if n.startswith("openai-agents-")])
def test_after_a_handoff_calls_are_the_second_agents(name: str) -> None:
    agent = "billing_agent" if name.endswith("/handoff") else "support_bot"
    calls = whole(name).calls().values()
    assert {(call.framework, call.agent) for call in calls} <= {("openai_agents", agent)}


@pytest.mark.parametrize("name", [n for n in recordings() if n.startswith(("fastmcp", "combo"))])
def test_calls_of_a_server_have_its_name(name: str) -> None:
    assert {call.server for call in whole(name).calls().values()} == {"fixture-tools"}
