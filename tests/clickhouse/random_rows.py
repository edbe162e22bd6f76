"""Rows as odd as the world's: nulls, weights, foreign scripts, and numbers of every size."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from fuseboard.conventions import BreakerState, Confidence, ErrorClass, Outcome, ResultSource
from fuseboard_collector.store import (
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Span,
    ToolCall,
)

END = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SPAN = timedelta(hours=20)

TOOLS = [
    "search", "book", "wetter", "天気予報", "it's \"quoted\"", "back\\slash", "tab\tand\nline",
    "🧨 fuse", "$dollar::VARCHAR", "{brace:String}", "per%cent", "é",
]  # fmt: skip
FOREIGN = {"天気予報", "é"}
REGIONS = [None, None, "eu-west", "us-east", "ap-südost", ""]
SESSIONS = [None, *(f"s-{n}" for n in range(60)), "größe's"]
OPERATIONS = [None, "chat", "invoke_agent"]
UPSTREAMS = [None, None, "api.example.org", "model-x"]
SERVICES = [None, "trip", "shop"]
ERROR_TYPES = [None, "TimeoutError", "httpx.HTTPStatusError", "Ошибка"]
ODD_SECONDS = [0.0, 1e-6, 5e-324, 0.0005, 0.001, 1.0, 5.0, 5.000001, 1 / 3, 86_400.0, 1e6]
WEIGHTS = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.5, 10.0, 0.375]
OUTCOMES = [Outcome.OK] * 12 + list(Outcome)
CLASSES = [*ErrorClass]
STATES = [*BreakerState]


TRACE = "7ace" * 8
"""A trace with more than one row."""
HASHES = 18
# Of each tool the rollup of arguments keeps the twenty that matter most; with more of them answers
# on long windows leave some out.


class Rows:
    """A stream of rows; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # What came to the generator later draws from its own, so that the rows stay as they were.
        self._later = random.Random(seed + 1)
        self._told: set[int] = set()

    def batches(self, calls: int, size: int = 10_000) -> Iterator[Batch]:
        """Yield batches with so many calls in all, and what goes with them."""
        for first in range(0, calls, size):
            amount = min(size, calls - first)
            batch = Batch(calls=[self.call() for _ in range(amount)])
            for call in batch.calls:
                if call.attempts > 1 or call.outcome == Outcome.ERROR:
                    batch.attempts += self.attempts(call)
            batch.transitions = [self.transition() for _ in range(40)]
            batch.heartbeats = [self.heartbeat() for _ in range(40)]
            batch.spans = [self.span() for _ in range(amount // 20 + 1)]
            yield batch
        yield self.trace()

    def trace(self) -> Batch:
        """Return a trace of the last hour with several rows of each kind."""
        calls = [self.call() for _ in range(9)]
        changes = [self.transition() for _ in range(5)]
        spans = [self.span() for _ in range(7)]
        for call in calls:
            length = round(call.duration_seconds * 1e6)
            call.end = self.recent_moment()
            call.start = call.end - length
        attempts = [attempt for call in calls for attempt in self.attempts(call)]
        for change in changes:
            change.time = self.recent_moment()
        for span in spans:
            span.start = self.recent_moment()
            span.parent_span_id = calls[0].span_id
        for row in (*calls, *attempts, *changes, *spans):
            row.trace_id = TRACE
        return Batch(calls=calls, attempts=attempts, transitions=changes, spans=spans)

    def recent_moment(self) -> int:
        """Return a moment of the last hour that no other report has."""
        seconds = END.timestamp() - 120 - self._random.random() * 3000
        return round(seconds * 1e6) // 7 * 7 + 1

    def moment(self) -> int:
        """Return a moment of the window in microseconds; many on whole seconds, as edges are."""
        back = self._random.random() * SPAN.total_seconds()
        seconds = END.timestamp() - (round(back) if self._random.random() < 0.2 else back)
        return round(seconds * 1e6)

    def own_moment(self) -> int:
        """Return a moment that no other report has: of two at once either may be the newer."""
        while (moment := self.moment()) in self._told:
            pass
        self._told.add(moment)
        return moment

    def seconds(self) -> float:
        if self._random.random() < 0.05:
            return self._random.choice(ODD_SECONDS)
        return self._random.lognormvariate(-1.5, 1.4)

    def call(self) -> ToolCall:
        pick, chance = self._random.choice, self._random.random
        outcome = pick(OUTCOMES)
        faulty = outcome in (Outcome.ERROR, Outcome.REJECTED, Outcome.DEGRADED, Outcome.PARTIAL)
        attempts = 0 if outcome == Outcome.REJECTED else pick([1, 1, 1, 1, 2, 3])
        seconds = self.seconds()
        tool = pick(TOOLS)
        return ToolCall(
            tool, end=self.moment(), duration_seconds=seconds, outcome=outcome,
            trace_id=self._hex(128), span_id=self._hex(64),
            attempt_seconds=seconds * chance() if chance() < 0.8 else None,
            region=pick(REGIONS), service=pick(SERVICES), instance=pick([None, "i-1", "i-2"]),
            error_class=pick(CLASSES) if faulty and chance() < 0.9 else None,
            error_type=pick(ERROR_TYPES) if faulty else None,
            classifier_id=pick([None, "http_status"]) if faulty else None,
            http_status=pick([None, 200, 429, 503]),
            error_message=pick(["", "x" * 300, "ü" * 250, "a\\b'c\td"]) if faulty else None,
            retryable=pick([None, True, False]), attempts=attempts,
            backoff_seconds=chance() if attempts > 1 else None,
            layer=pick([None, "tool", "retry", "fallback"]),
            breaker_state=pick([None, *STATES]), cost=pick([None, 1e-9, 0.25]),
            args_hash=pick([None, *(f"v1:{n:04x}" for n in range(HASHES))]),
            framework=pick([None, "crewai", "langgraph"]),
            instrumentation="openinference" if tool in FOREIGN else pick([None, "fuseboard"]),
            upstream=pick(UPSTREAMS), weight=pick(WEIGHTS),
            attributes=pick([None, '{"a": 1, "ключ": "\\u0001"}']),
            **self.provenance(),
        )  # fmt: skip

    def provenance(self) -> dict[str, Any]:
        """Return who called, and where the answer came from."""
        pick = self._later.choice
        return {
            "agent": pick([None, "planner", "критик"]), "session": pick(SESSIONS),
            "result_source": pick([None, *ResultSource]), "confidence": pick([None, *Confidence]),
            "result_age_seconds": pick([None, 0.0, 12.5, 90_000.0, self._later.random() * 600]),
            "fallback_tool": pick([None, None, "archive", TOOLS[3]]),
            "partial_failures": pick([None, 0, 2]), "cause_type": pick([None, "OSError"]),
        }  # fmt: skip

    def attempts(self, call: ToolCall) -> Iterator[Attempt]:
        assert isinstance(call.start, int)
        for number in range(1, max(call.attempts, 1) + 1):
            failed = number < call.attempts or call.outcome == Outcome.ERROR
            yield Attempt(
                call.trace_id, call.span_id, number, call.start + number, self.seconds(),
                call.tool, "failure" if failed else "success", span_id=self._hex(64),
                region=call.region, error_class=self._random.choice([None, *CLASSES]),
                http_status=call.http_status, received_at=call.received_at,
                cost=self._later.choice([None, 0.0, 0.125]),
            )  # fmt: skip

    def transition(self) -> BreakerTransition:
        pick = self._random.choice
        tool, region = pick(TOOLS[:3]), pick(REGIONS[:4])
        return BreakerTransition(
            self.own_moment(), "/".join(filter(None, (tool, region))), tool, pick(STATES),
            pick(STATES), region=region, service=pick(SERVICES), instance=pick([None, "i-1"]),
            failure_ratio=self._random.random(), calls=20, reason=pick([None, "failure ratio"]),
            error_class=pick([None, *CLASSES]),
        )  # fmt: skip

    def heartbeat(self) -> Heartbeat:
        pick = self._random.choice
        tool, region = pick(TOOLS[:3]), pick(REGIONS[:4])
        listed = {
            "breaker": "/".join(filter(None, (tool, region))), "tool": tool, "region": region,
            "state": pick(STATES), "since": pick([None, "soon", "2026-11-30T07:08:09.123456Z"]),
        }  # fmt: skip
        breakers = pick([None, [], [listed], [{"tool": tool}, listed]])
        running = [{"tool": tool, "region": region, "span_id": self._hex(64),
                    "start": "2026-11-30T01:02:03Z"}, {"tool": tool}]  # fmt: skip
        text = None if breakers is None else json.dumps(breakers, ensure_ascii=pick([True, False]))
        return Heartbeat(
            self.own_moment(), pick(["i-1", "i-2", "i-3"]), pick(SERVICES), breakers=text,
            calls_in_flight=json.dumps(running),
        )  # fmt: skip

    def span(self) -> Span:
        return Span(
            self._hex(128), self._hex(64), self._random.choice(TOOLS), self.moment(),
            self.seconds(), attributes='{"k": [1, null]}',
            session=self._random.choice(SESSIONS), operation=self._random.choice(OPERATIONS),
            input_tokens=self._random.choice([None, 10, 5000]),
            output_tokens=self._random.choice([None, 0, 7]),
        )  # fmt: skip

    def _hex(self, bits: int) -> str:
        return f"{self._random.getrandbits(bits):0{bits // 4}x}"
