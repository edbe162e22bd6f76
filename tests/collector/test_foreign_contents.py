"""Nothing that was said reaches the store: over all recorded exports, and by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from assembled_exports import whole
from recorded_exports import RECEIVED, Recording, recordings

from fuseboard_collector.normalise.incoming import IncomingSpan, Source, Traces
from fuseboard_collector.normalise.layouts import layout_of
from fuseboard_collector.normalise.normaliser import normalise_traces

# Where emitters keep arguments, results, prompts and answers, as read in the recordings; kept
# apart from the collector's own list on purpose.
SAID = (
    "ai.prompt", "ai.response.text", "ai.response.toolCalls", "ai.toolCall.args",
    "ai.toolCall.result", "crew_tasks", "crewai.crew.result", "crewai.crew.tasks",
    "crewai.task.description", "error", "exception.logfire.data", "gcp.vertex.agent.tool_call_args",
    "gcp.vertex.agent.tool_response", "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response", "gen_ai.completion", "gen_ai.input.messages",
    "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.system_instructions", "gen_ai.task.input",
    "gen_ai.task.output", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "input",
    "input.value", "langfuse.observation.input", "langfuse.observation.output",
    "langfuse.trace.input", "langfuse.trace.output", "llm.input_messages", "llm.output_messages",
    "mlflow.spanInputs", "mlflow.spanOutputs", "output", "output.value",
    "pydantic_ai.all_messages", "request", "request_data", "response", "task_description",
    "tool.task_name", "tool_arguments", "tool_response", "traceloop.entity.input",
    "traceloop.entity.output",
)  # fmt: skip
ENVELOPE = ("error.type", "input.mime_type", "output.mime_type")
# What a failed call answered is the message of its fault, redacted, and may name its type.
OF_FAULTS = ("error_message", "error_type")
# Words of the formats themselves.
VOCABULARY = {"function", "tool_call"}
# Of the tools' bodies and of the scripts that drove the models.
ARGUMENTS = ("Lisbon", "SKU-9", "https://example.com/", "refund policy", "A-17")
RESULTS = ("Please help", "You help", "index unavailable", "unsupported language", "closed")


def leaves(value: Any) -> Iterator[str]:
    """Yield the texts inside a value, also inside JSON in text, and every word of JSON's values."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            yield value
            return
        if isinstance(inner, str | dict | list):
            yield from leaves(inner)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)


def stored(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield column and text of everything that a recording brings into the store."""
    batch = normalise_traces(recording.traces(), RECEIVED)
    rows = [row for rows in batch.lists() for row in rows]
    for row in [*rows, *whole(recording.name).result()]:
        for column in fields(row):
            value = getattr(row, column.name)
            if isinstance(value, str):
                yield column.name, value


def is_said(attribute: str) -> bool:
    inside = tuple(f"{name}." for name in SAID)
    return attribute in SAID or (attribute.startswith(inside) and attribute not in ENVELOPE)


def said_in(recording: Recording) -> set[str]:
    said: set[str] = set()
    for span in recording.spans().values():
        for attribute, value in span.attributes.items():
            if is_said(attribute):
                said.update(leaves(value))
        for event in span.events:
            if event.name != "exception":
                said.update(leaves(event.attributes))
    return {leaf for leaf in said - VOCABULARY if len(leaf) >= 8}


def facts_of(recording: Recording) -> str:
    """Return what the envelope says: names, scopes, ids. Contents may repeat those."""
    facts: list[str] = []
    for source, spans in recording.traces().groups:
        facts.append(source.scope)
        for span in spans:
            facts += [span.name, *(event.name for event in span.events)]
            facts += [str(e.attributes.get("exception.type")) for e in span.events]
            facts += [str(v) for k, v in span.attributes.items() if not is_said(k)]
    return "\n".join(facts)


@pytest.mark.parametrize("name", recordings())
def test_nothing_that_was_said_is_in_any_column(name: str) -> None:
    recording = recordings()[name]
    facts = facts_of(recording)
    said = {leaf for leaf in said_in(recording) if leaf not in facts}
    columns = [(column, text) for column, text in stored(recording) if column not in OF_FAULTS]
    assert [(c, leaf) for leaf in said for c, text in columns if leaf in text] == []


def test_what_the_recorded_runs_were_about_is_nowhere() -> None:
    for recording in recordings().values():
        for column, text in stored(recording):
            if column not in OF_FAULTS:
                assert not [word for word in (*ARGUMENTS, *RESULTS) if word in text], column


def test_the_recordings_have_enough_to_hide() -> None:
    said = [leaf for recording in recordings().values() for leaf in said_in(recording)]
    assert len(said) > 1500
    for word in (*ARGUMENTS, *RESULTS):
        assert any(word in leaf for leaf in said), word


def kept(attributes: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of what is stored of a span."""
    return layout_of(attributes).kept_of(attributes)


@pytest.mark.parametrize(
    "name",
    [
        "app.result", "toolOutput", "my_tool.arguments", "http.request.header.authorization",
        "db.query.text", "db.statement", "db.query.parameter.0", "x.api_key", "apiKey", "password",
        "rpc.request.metadata.cookie", "exception.message", "exception.stacktrace", "error",
        "vendor.user_prompt", "gen_ai.task.input", "question", "gen_ai.tool.call.arguments",
    ],
)  # fmt: skip
def test_a_name_that_tells_of_content_is_left_out(name: str) -> None:
    assert kept({name: "said"}) == ()


@pytest.mark.parametrize(
    "name",
    [
        "gen_ai.tool.description", "gen_ai.request.model", "gen_ai.response.finish_reasons",
        "input.mime_type", "tool.name", "langgraph_path", "session.id", "code.function",
        "error.type", "gen_ai.usage.input_tokens", "server.address", "http.route", "query_count",
        "mcp.method.name", "fuseboard.outcome", "result_size",
    ],
)  # fmt: skip
def test_a_name_that_tells_of_none_is_kept(name: str) -> None:
    assert kept({name: "kept"}) == (name,)


def test_a_number_is_a_count_unless_its_place_is_known_to_hold_content() -> None:
    counts = {"llm.token_count.prompt": 12, "app.results": 3.5, "has.error": True}
    assert set(kept({**counts, "gen_ai.tool.call.result": 42})) == counts.keys()
    assert kept(dict.fromkeys(counts, "12")) == ()


@pytest.mark.parametrize("is_call", [True, False])
def test_addresses_lose_their_secrets_wherever_they_are(is_call: bool) -> None:
    url = "https://ana:hunter2@api.test/v1/charges?key=hunter2"
    attributes: dict[str, Any] = {"url.full": url, "links": [url, {"deep": url}]}
    if is_call:
        attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "charge"}
    span = IncomingSpan("1" * 32, "2" * 16, name="POST", attributes=attributes)
    batch = normalise_traces(Traces([(Source({}), [span])]), RECEIVED)
    (row,) = (*batch.spans, *batch.sightings)
    assert row.attributes is not None
    assert "hunter2" not in row.attributes
    assert row.attributes.count("https://api.test/v1/charges") == 3


@pytest.mark.parametrize("tool", [None, "fetch https://ana:hunter2@api.test/v1"])
def test_names_lose_the_secrets_of_addresses_too(tool: str | None) -> None:
    url = f"GET https://ana:hunter2{'x' * 250}@api.test/v1/charges?key=hunter2"
    attributes: dict[str, Any] = {"gen_ai.agent.name": url, "session.id": url}
    if tool is not None:
        attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    span = IncomingSpan("1" * 32, "2" * 16, name=url, attributes=attributes)
    batch = normalise_traces(Traces([(Source({}), [span])]), RECEIVED)
    (row,) = (*batch.spans, *batch.sightings)
    assert (row.name, row.agent, row.session) == ("GET https://api.test/v1/charges",) * 3
    assert "hunter2" not in repr(row)
