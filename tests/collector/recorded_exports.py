"""All recorded exports of real instrumentations, with what the tools' bodies say was right.

``recordings.tar.xz`` holds, for each, the bytes of one trace request and its expectations. The
requests are as exported, except that host, process and path values are replaced, that source
lines are cut from stacks, and that long payloads of spans that are no calls are shortened.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fuseboard_collector.normalise.assembly import Trace, assemble
from fuseboard_collector.normalise.incoming import IncomingSpan, Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.receiver import otlp_protobuf
from fuseboard_collector.store.rows import Sighting, ToolCall

ARCHIVE = Path(__file__).parents[1] / "data" / "otlp" / "recordings.tar.xz"
RECEIVED = 1_796_000_000_000_000
"""When the requests arrived, for tests: microseconds since the epoch."""


@dataclass(frozen=True)
class Recording:
    """One export, for example ``langchain-langsmith/raises-handled``.

    Attributes:
        body: The request as protobuf.
        expected: One entry per attempt at a tool.
    """

    name: str
    body: bytes
    expected: list[dict[str, Any]]

    def traces(self) -> Traces:
        """Decode the request anew."""
        return otlp_protobuf.decode_traces(self.body)

    def spans(self) -> dict[str, IncomingSpan]:
        """Return all spans by id."""
        return {span.span_id: span for _, spans in self.traces().groups for span in spans}

    def failures(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield position and entry of each attempt that failed and has a span."""
        for number, item in enumerate(self.expected):
            if item["outcome"] == "error" and item["span_id"] and "kind" not in item:
                yield number, item


@cache
def recordings() -> dict[str, Recording]:
    """Return all recordings by name."""
    bodies, expected = {}, {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            if member.name.endswith(".pb"):
                bodies[member.name.removesuffix(".pb")] = stream.read()
            else:
                calls = json.load(stream)["tool_calls"]
                expected[member.name.removesuffix(".expected.json")] = calls
    return {name: Recording(name, bodies[name], expected[name]) for name in sorted(bodies)}


def calls_of(traces: Traces) -> dict[str, ToolCall]:
    """Return the calls that a request comes to, by the id of their span."""
    batch = normalise_traces(traces, RECEIVED)
    calls = list(batch.calls)
    seen: dict[str, list[Sighting]] = {}
    for sighting in batch.sightings:
        seen.setdefault(sighting.trace_id, []).append(sighting)
    for trace_id, sightings in seen.items():
        calls += assemble(Trace(trace_id, sightings)).calls
    return {call.span_id: call for call in calls}


MERGED = ("combo-", "fastmcp-native/", "mcp-native/stdio", "langchain-openinference+")


def until_relatives_are_merged(names: Iterable[str]) -> list[Any]:
    """Return parameters; those whose calls have several spans may fail so far."""
    mark = pytest.mark.xfail(reason="relatives of a call are not merged yet", strict=False)
    return [pytest.param(n, marks=mark) if n.startswith(MERGED) else n for n in names]
