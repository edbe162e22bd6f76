"""What is sent: spans of our own shim, and spans recorded of other instrumentations."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import pickle
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ingesting.templates import Found, Template, template

SPANS = 512
TEMPLATES = 8
RECORDINGS = Path(__file__).resolve().parents[2] / "tests" / "data" / "otlp"
CONTEXT_PER_TOOL = 2


def write(folder: Path) -> dict[str, dict[str, float]]:
    """Make the templates of every kind of load; return what they are like.

    Args:
        folder: Gets one file for each kind.
    """
    foreign = [found for path in _recordings() for found in _spans_of(path.read_bytes())]
    kinds: dict[str, Iterator[Found]] = {
        "own": _endless(own_spans),
        "foreign": _mixed(foreign),
        "foreign tools": _endless(lambda: [item for item in foreign if is_tool(item.span)]),
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


def _recordings() -> list[Path]:
    found = sorted(RECORDINGS.glob("**/*.pb"))
    return [path for path in found if "metrics" not in path.name]


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


def _mixed(spans: Sequence[Found]) -> Iterator[Found]:
    """Yield one tool span and two context spans, over and over."""
    tools = [item for item in spans if is_tool(item.span)]
    context = [item for item in spans if not is_tool(item.span)]
    more_tools, more_context = _endless(lambda: tools), _endless(lambda: context)
    while True:
        yield next(more_tools)
        for _ in range(CONTEXT_PER_TOOL):
            yield next(more_context)


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
