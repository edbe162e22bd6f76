"""Who sends what, what was acknowledged, and what the store must hold because of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fuseboard import conventions as c

Key = tuple[str, str]
Facts = tuple[str, str, str | None]
"""Tool, outcome and session of a call."""

OFFSETS = (0, 5 * 3600 * 1_000_000, 12 * 3600 * 1_000_000)
"""Microseconds that calls lie back, so that some of their hours can be rolled up."""
FOREIGN = "openinference.instrumentation.langchain"


@dataclass
class Sent:
    """One trace of an agent, in the parts that it is sent in.

    Attributes:
        stamp: When it was made; microseconds since the epoch. Its calls ended so long before as
            one of :data:`OFFSETS` says.
        parts: Resources with spans, as OTLP/JSON writes them.
        calls: What it must come to once all parts have been acknowledged.
        own: Calls of ours by part: they must be there as soon as that one is acknowledged.
    """

    stamp: int
    parts: list[dict[str, Any]]
    calls: dict[Key, Facts]
    own: list[set[Key]]
    waiting: set[int] = field(default_factory=set)


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = {bool: "boolValue", int: "intValue", str: "stringValue"}[type(value)]
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


class Agent:
    """Makes traces with known answers."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._number = 0

    def trace(self) -> Sent:
        """Return a trace: an agent's span, tools below it, one of them perhaps with our shim."""
        self._number += 1
        stamp = time.time_ns() // 1000
        now = stamp - self._chance.choice(OFFSETS)
        trace, root = self._id(16), self._id(8)
        calls: dict[Key, Facts] = {}
        session = f"thread-{trace[:8]}"
        spans = [self._span(trace, root, None, now, "invoke_agent planner", {
            c.GEN_AI_OPERATION_NAME: "invoke_agent", c.GEN_AI_CONVERSATION_ID: session,
        })]  # fmt: skip
        for place in range(self._chance.randint(0, 6)):
            tool, span, failed = f"tool{place}", self._id(8), self._chance.random() < 0.3
            spans.append(self._foreign(trace, span, root, now, tool, failed=failed))
            outcome = c.Outcome.ERROR if failed else c.Outcome.OK
            calls[trace, span] = (tool, outcome.value, session)
        for place in range(self._chance.randint(0, 4)):
            tool, span = f"own{place}", self._id(8)
            spans.append(self._own(trace, span, root, now, tool))
            calls[trace, span] = (tool, "ok", None)
            if self._chance.random() < 0.5:
                spans.append(self._foreign(trace, self._id(8), span, now, tool))
        self._chance.shuffle(spans)
        return self._cut(stamp, spans, calls)

    def _cut(self, stamp: int, spans: list[dict[str, Any]], calls: dict[Key, Facts]) -> Sent:
        parts = (
            [spans[number::3] for number in range(3)] if self._chance.random() < 0.6 else [spans]
        )
        parts = [part for part in parts if part]
        own = [
            {(span["traceId"], span["spanId"]) for span in part if span["name"].startswith("own ")}
            for part in parts
        ]  # fmt: skip
        resources = [_resource(part) for part in parts]
        return Sent(stamp, resources, calls, own, set(range(len(resources))))

    def _id(self, size: int) -> str:
        return self._chance.randbytes(size).hex()

    def _span(
        self, trace: str, span: str, parent: str | None, now: int, name: str,
        attributes: dict[str, Any], **more: Any,
    ) -> dict[str, Any]:  # fmt: skip
        return {
            "traceId": trace, "spanId": span, "name": name, "kind": 1,
            **({"parentSpanId": parent} if parent else {}),
            "startTimeUnixNano": str((now - 100_000) * 1000), "endTimeUnixNano": str(now * 1000),
            "attributes": [attribute(key, value) for key, value in attributes.items()], **more,
        }  # fmt: skip

    def _foreign(
        self, trace: str, span: str, parent: str, now: int, tool: str, *, failed: bool = False
    ) -> dict[str, Any]:
        given = {c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL, c.GEN_AI_TOOL_NAME: tool}
        if failed:
            more = {"status": {"code": 2, "message": "timed out"}}
            given[c.ERROR_TYPE] = "TimeoutError"
            return self._span(trace, span, parent, now, f"execute_tool {tool}", given, **more)
        return self._span(trace, span, parent, now, f"execute_tool {tool}", given)

    def _own(self, trace: str, span: str, parent: str, now: int, tool: str) -> dict[str, Any]:
        given = {
            c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL, c.GEN_AI_TOOL_NAME: tool, c.OUTCOME: "ok",
            c.ATTEMPTS: 1, c.LAYER: "tool",
        }  # fmt: skip
        return self._span(trace, span, parent, now, f"own {tool}", given)


def _resource(spans: Iterable[dict[str, Any]]) -> dict[str, Any]:
    own = [span for span in spans if span["name"].startswith("own ")]
    foreign = [span for span in spans if not span["name"].startswith("own ")]
    scopes = [
        {"scope": {"name": name}, "spans": part}
        for name, part in ((c.SCOPE_NAME, own), (FOREIGN, foreign)) if part
    ]  # fmt: skip
    resource = {"attributes": [attribute("service.name", "agent")]}
    return {"resource": resource, "scopeSpans": scopes}


class Books:
    """What was sent and acknowledged. Used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._complete: dict[str, Sent] = {}
        self._own: dict[Key, int] = {}
        self._traces: set[str] = set()
        self.acknowledged = 0

    def begin(self, sent: Sent) -> None:
        """Note a trace before any of it is sent."""
        with self._lock:
            self._traces.update(trace for trace, _ in sent.calls)

    def acknowledge(self, parts: Iterable[tuple[Sent, int]]) -> None:
        """Note that a request with these parts was answered with success."""
        with self._lock:
            self.acknowledged += 1
            for sent, number in parts:
                sent.waiting.discard(number)
                self._own.update(dict.fromkeys(sent.own[number], sent.stamp))
                if not sent.waiting and sent.calls:
                    self._complete[next(iter(sent.calls))[0]] = sent

    def check(
        self, calls: Sequence[dict[str, Any]], attempts: Sequence[dict[str, Any]], since: int
    ) -> int:
        """Hold rows of the store against the books.

        Args:
            calls: All stored calls of traces made after ``since``, and perhaps of others.
            attempts: All stored attempts of these.
            since: Microseconds since the epoch.

        Returns:
            How many calls had to be there.
        """
        with self._lock:
            complete = {trace: sent for trace, sent in self._complete.items() if sent.stamp > since}
            own = {key for key, stamp in self._own.items() if stamp > since}
        found = {(row["trace_id"], row["span_id"]): row for row in calls}
        assert len(found) == len(calls), "a call is there twice"
        assert {trace for trace, _ in found} <= self._traces, "a call came out of nowhere"
        assert not own - found.keys(), "a call of ours that was acknowledged is lost"
        expected = {key: facts for sent in complete.values() for key, facts in sent.calls.items()}
        there = {
            key: (row["tool"], row["outcome"], row["session"])
            for key, row in found.items() if key[0] in complete
        }  # fmt: skip
        assert there == expected
        tries = Counter((row["trace_id"], row["call_span_id"]) for row in attempts)
        assert {key: tries[key] for key in expected} == dict.fromkeys(expected, 1)
        return len(expected.keys() | own)
