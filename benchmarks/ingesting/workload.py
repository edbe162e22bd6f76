"""What is sent: spans of our own shim, and spans recorded of other instrumentations."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import pickle
import secrets
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from ingesting.templates import Found, Template, template

SPANS = 512
TEMPLATES = 8
RECORDINGS = Path(__file__).resolve().parents[2] / "tests" / "data" / "otlp" / "recordings.tar.xz"
FAILED_OF_100 = 8


def write(folder: Path) -> dict[str, dict[str, float]]:
    """Make the templates of every kind of load; return what they are like.

    Args:
        folder: Gets one file for each kind.
    """
    foreign = recorded_spans()
    kinds: dict[str, Iterator[Found]] = {
        "own": _endless(own_spans),
        "foreign": _endless(lambda: foreign),
        "foreign tools": _endless(lambda: [item for item in foreign if is_tool(item.span)]),
        "agents": _endless(agent_spans),
    }
    facts = {}
    for kind, spans in kinds.items():
        templates = [template([next(spans) for _ in range(SPANS)]) for _ in range(TEMPLATES)]
        single = [template([next(spans)]) for _ in range(TEMPLATES)]
        (folder / f"{kind}.requests").write_bytes(pickle.dumps(templates))
        (folder / f"{kind}.single.requests").write_bytes(pickle.dumps(single))
        facts[kind] = _facts(templates)
    return facts


def own_spans() -> list[Found]:
    """Have the shim itself make spans: 92 of 100 calls succeed, the others fail and retry."""
    import fuseboard
    from fuseboard import Policy, Retry

    bodies: list[bytes] = []
    with _capturing(bodies) as endpoint:
        fuseboard.init("planner", region="eu-west", endpoint=endpoint)
        retry = Retry(attempts=3, wait_initial=0.001, wait_max=0.001)
        search = fuseboard.tool(_search, policy=Policy(retry=retry, effects="none"))
        quote = fuseboard.tool(_quote)
        for session in range(800):
            with fuseboard.session(secrets.token_hex(8)):
                for call in range(4 * session, 4 * session + 4):
                    _quietly(search if call % 3 else quote, call)
        fuseboard.shutdown()
    return [found for body in bodies for found in _spans_of(body)]


def agent_spans() -> list[Found]:
    """Make traces of an agent that calls seven tools, by OpenTelemetry's GenAI conventions."""
    group = ResourceSpans(
        resource={"attributes": _pairs({"service.name": "planner", "service.version": "1.2"})}
    )
    scope = ScopeSpans(scope={"name": "opentelemetry.instrumentation.planner", "version": "1.0"})
    return [Found(group, scope, span) for number in range(SPANS) for span in _agent_trace(number)]


def _agent_trace(number: int) -> list[Span]:
    trace, root = secrets.token_bytes(16), secrets.token_bytes(8)
    begin = 1_796_000_000_000_000_000 + number * 1_000_000
    said = {
        "gen_ai.agent.name": "planner", "gen_ai.conversation.id": secrets.token_hex(8),
        "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5",
    }  # fmt: skip
    agent = Span(
        trace_id=trace, span_id=root, name="invoke_agent planner", kind=1,
        start_time_unix_nano=begin, end_time_unix_nano=begin + 9_000_000,
        attributes=_pairs({"gen_ai.operation.name": "invoke_agent", **said}),
    )  # fmt: skip
    return [agent, *(_tool_span(agent, said, call) for call in range(7))]


def _tool_span(agent: Span, said: dict[str, str | int], call: int) -> Span:
    begin = agent.start_time_unix_nano + call * 1_000_000
    span = Span(
        trace_id=agent.trace_id, span_id=secrets.token_bytes(8), parent_span_id=agent.span_id,
        name=f"execute_tool tool_{call}", kind=1, start_time_unix_nano=begin,
        end_time_unix_nano=begin + 700_000 + secrets.randbelow(200_000),
    )  # fmt: skip
    facts: dict[str, str | int] = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool_{call}",
        "gen_ai.tool.type": "function", "gen_ai.tool.call.id": f"call_{secrets.token_hex(8)}",
        "gen_ai.tool.description": "Look something up.", "server.address": "api.example.com",
        "server.port": 443, "app.step": call, **said,
    }  # fmt: skip
    if secrets.randbelow(100) < FAILED_OF_100:
        facts["error.type"] = "TimeoutError"
        span.status.code, span.status.message = 2, "timed out after 5.0 s"
        words = {"exception.type": "TimeoutError", "exception.message": "timed out after 5.0 s"}
        span.events.add(name="exception", time_unix_nano=begin + 600_000, attributes=_pairs(words))
    span.attributes.extend(_pairs(facts))
    return span


def _pairs(facts: Mapping[str, str | int]) -> list[KeyValue]:
    return [
        KeyValue(key=key, value={"int_value" if isinstance(fact, int) else "string_value": fact})
        for key, fact in facts.items()
    ]


def _search(query: str, call: int) -> str:
    if call % 25 == 0:
        raise ConnectionError(f"connection to the index was reset in call {call}")
    return query


def _quote(query: str, call: int) -> str:
    if call % 25 == 1:
        raise ValueError(f"no such currency in {query!r}")
    return query


def _quietly(tool: Callable[..., str], call: int) -> None:
    with contextlib.suppress(ConnectionError, ValueError):
        tool(query=secrets.token_hex(4), call=call)


@contextlib.contextmanager
def _capturing(bodies: list[bytes]) -> Iterator[str]:
    """Run a collector that keeps what it is sent; yield its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                bodies.append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def recorded_spans() -> list[Found]:
    """Return the spans of all recordings, those of a trace together; a third are of tools."""
    with tarfile.open(RECORDINGS) as archive:
        bodies = {
            member.name: stream.read()
            for member in archive
            if member.name.endswith(".pb") and (stream := archive.extractfile(member))
        }
    return [found for name in sorted(bodies) for found in _spans_of(bodies[name])]


def _spans_of(body: bytes) -> list[Found]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Found(group, scope, span)
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def is_tool(span: Span) -> bool:
    """Return whether a recorded span tells of a tool's execution, in any of the dialects."""
    said = {pair.key: pair.value.string_value for pair in span.attributes}
    return (
        said.get("gen_ai.operation.name") == "execute_tool"
        or said.get("mcp.method.name") == "tools/call"
        or "ai.toolCall.name" in said
        or any(said.get(key, "").lower() == "tool" for key in _KIND_KEYS)
    )


_KIND_KEYS = (
    "openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind",
    "langfuse.observation.type", "mlflow.spanType",
)  # fmt: skip


def _endless(make: Callable[[], list[Found]]) -> Iterator[Found]:
    made = make()
    while True:
        yield from made


def _facts(templates: Sequence[Template]) -> dict[str, float]:
    spans = [
        span
        for template in templates
        for group in ExportTraceServiceRequest.FromString(template.body).resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]
    return {
        "bytes per span": sum(len(template.body) for template in templates) / len(spans),
        "attributes per span": sum(len(span.attributes) for span in spans) / len(spans),
        "tool spans of 100": 100 * sum(is_tool(span) for span in spans) / len(spans),
    }
