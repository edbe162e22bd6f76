"""All recorded exports of real instrumentations, with what the tools' bodies say was right.

``recordings.tar.xz`` holds, for each, the bytes of one trace request and its expectations. The
requests are as exported, except that host, process and path values are replaced, that source
lines are cut from stacks, and that long payloads of spans that are no calls are shortened.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fuseboard_collector.normalise.incoming import IncomingSpan, Traces
from fuseboard_collector.receiver import otlp_protobuf

ARCHIVE = Path(__file__).parents[1] / "data" / "otlp" / "recordings.tar.xz"
RECEIVED = 1_796_050_000_000_000
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
