"""What an agent did is what the export says: every call once, nothing else, nothing changed."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

REGIONS = ("us-east", "eu-west", "ap-southeast")
HTTP_ERROR = "httpx.HTTPStatusError"
OPEN = "fuseboard.errors.CircuitOpenError"
STRANGE = "__main__.StrangeError"

Expected = tuple[str, str | None, str | None, int | None, int]
"""Outcome, error class, error type, HTTP status, attempts."""

# Each row: tool, script of its attempts, further facts of the call, what must be exported.
CASES: list[tuple[str, list[str], dict[str, bool], Expected]] = [
    ("search", ["ok"], {}, ("ok", None, None, None, 1)),
    ("search", ["422"], {}, ("error", "L1_input", HTTP_ERROR, 422, 1)),
    ("search", ["401"], {}, ("error", "L2_access", HTTP_ERROR, 401, 1)),
    ("search", ["503"], {}, ("error", "L3_transient", HTTP_ERROR, 503, 1)),
    ("search", ["defect"], {}, ("error", "L4_persistent", "KeyError", None, 1)),
    ("search", ["strange"], {}, ("error", "unclassified", STRANGE, None, 1)),
    ("search", ["hang"], {"cancel": True}, ("cancelled", None, None, None, 1)),
    ("search", ["pause"], {}, ("interrupted", None, None, None, 1)),
    ("weather", ["ok"], {}, ("ok", None, None, None, 1)),
    ("weather", ["503", "ok"], {}, ("ok", None, None, None, 2)),
    ("weather", ["hang", "ok"], {}, ("ok", None, None, None, 2)),
    ("weather", ["503", "503", "503"], {}, ("degraded", "L3_transient", None, 503, 3)),
    ("weather", ["hang", "hang", "hang"], {}, ("degraded", "L3_transient", None, None, 3)),
    ("weather", ["501"], {}, ("degraded", "L4_persistent", None, 501, 1)),
    ("weather", ["hang"], {"cancel": True}, ("cancelled", None, None, None, 1)),
    ("flights", ["ok"], {}, ("ok", None, None, None, 1)),
    ("flights", ["reset", "reset", "ok"], {}, ("ok", None, None, None, 3)),
    ("flights", ["reset", "reset", "reset"], {},
     ("error", "L3_transient", "ConnectionResetError", None, 3)),
    ("flights", ["partial"], {}, ("partial", "L5_semantic", None, None, 1)),
    ("hotels", ["ok"], {}, ("ok", None, None, None, 1)),
    ("hotels", ["packet"], {}, ("error", "L5_semantic", None, None, 1)),
    ("hotels", ["refused"], {}, ("error", "L3_transient", "ConnectionRefusedError", None, 1)),
    ("hotels", ["strange"], {}, ("error", "unclassified", STRANGE, None, 1)),
    ("payment", ["ok"], {}, ("ok", None, None, None, 1)),
    ("payment", ["reset"], {}, ("error", "L3_transient", "ConnectionResetError", None, 1)),
    ("payment", ["429-now", "ok"], {}, ("ok", None, None, None, 2)),
    ("payment", ["refused", "ok"], {}, ("ok", None, None, None, 2)),
    ("payment", ["402"], {}, ("error", "L2_access", HTTP_ERROR, 402, 1)),
    ("maps", ["item", "item"], {}, ("ok", None, None, None, 1)),
    ("maps", ["item", "503"], {}, ("error", "L3_transient", HTTP_ERROR, 503, 1)),
    ("maps", ["item", "item"], {"leave": True}, ("abandoned", None, None, None, 1)),
    ("knowledge", ["item", "item", "item"], {}, ("ok", None, None, None, 1)),
    ("knowledge", ["item", "defect"], {}, ("error", "L4_persistent", "KeyError", None, 1)),
    ("knowledge", ["item", "item"], {"leave": True}, ("abandoned", None, None, None, 1)),
]  # fmt: skip

Row = tuple[str, str | None, str | None, Expected]
"""Tool, region, hash of the arguments, and the rest."""


def hash_of(arguments: dict[str, Any]) -> str:
    """Hash as the convention says, in the fewest words: keyed BLAKE2b of canonical JSON."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    key = b"fuseboard-published-default-key-v1"
    return "v1:" + hashlib.blake2b(text.encode(), key=key, digest_size=8).hexdigest()


def build_plan() -> tuple[list[list[dict[str, Any]]], Counter[Row]]:
    """Return the phases for the agent and the multiset that the export must equal."""
    expected: Counter[Row] = Counter()
    number = 0

    def call(
        tool: str, region: str, script: list[str], more: dict[str, bool], answer: Expected
    ) -> dict[str, Any]:
        nonlocal number
        number += 1
        arguments = {"script": script, "region": region, "number": number}
        expected[(tool, region, hash_of(arguments), answer)] += 1
        return {"tool": tool, **arguments, **more}

    mixed = [
        call(tool, region, script, more, answer)
        for tool, script, more, answer in CASES
        for region in REGIONS
        for _ in range(5)
    ]
    random.Random(7).shuffle(mixed)
    # Three attempts in a row fail three times: nine failures open each region's breaker.
    opening = [
        [
            call("rates", region, ["503"] * 3, {}, ("error", "L3_transient", HTTP_ERROR, 503, 3))
            for region in REGIONS
        ]
        for _ in range(3)
    ]
    rejected = [
        call("rates", region, ["ok"], {}, ("rejected", "L3_transient", OPEN, None, 0))
        for region in REGIONS
        for _ in range(8)
    ]
    return [mixed, *opening, rejected], expected


def exported_rows(records: list[dict[str, Any]]) -> Counter[Row]:
    return Counter(
        (
            record["tool"],
            record["region"],
            record["args_hash"],
            (
                record["outcome"],
                record["error_class"],
                record["error_type"] if record["error_class"] != "L5_semantic" else None,
                record["http_status"],
                record["attempts"],
            ),
        )
        for record in records
    )


def test_everything_an_agent_did_is_exported_exactly_once(
    make_server: Callable[..., Any],
    make_proxy: Callable[..., Any],
    run_agent: Callable[..., Any],
    tmp_path: Path,
) -> None:
    """One request is refused with 503 and one delivered twice on the way."""
    phases, expected = build_plan()
    assert expected.total() >= 500
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(phases))
    server = make_server().start()
    traces: list[int] = []

    def script(number: int, path: str) -> str:
        if path != "/v1/traces":
            return "pass"
        traces.append(number)
        return {1: "503", 2: "twice"}.get(len(traces), "pass")

    proxy = make_proxy(server.otlp_port, script)
    agent = run_agent("scripted_agent.py", str(plan), proxy.url)
    out, err = agent.communicate(timeout=150)
    assert agent.returncode == 0, out + err
    assert {"503", "twice"} <= {action for _, action in proxy.done}

    calls = server.export("calls")
    difference = exported_rows(calls)
    difference.subtract(expected)
    assert {row: n for row, n in difference.items() if n} == {}
    assert len({(c["trace_id"], c["span_id"]) for c in calls}) == len(calls)
    check_attempts(server.export("attempts"), calls)
    check_transitions(server.export("transitions"))

    assert server.stop() == 0, server.log.read_text()
    assert sorted(map(repr, server.export_at_rest("calls"))) == sorted(map(repr, calls))


def check_attempts(attempts: list[dict[str, Any]], calls: list[dict[str, Any]]) -> None:
    numbers: dict[tuple[str, str], list[int]] = {}
    for attempt in attempts:
        key = (attempt["trace_id"], attempt["call_span_id"])
        numbers.setdefault(key, []).append(attempt["number"])
    for call in calls:
        found = sorted(numbers.pop((call["trace_id"], call["span_id"]), []))
        assert found == list(range(1, call["attempts"] + 1)), call
    assert numbers == {}


def check_transitions(transitions: list[dict[str, Any]]) -> None:
    seen = Counter((t["tool"], t["region"], t["from_state"], t["to_state"]) for t in transitions)
    assert seen == Counter(("rates", region, "closed", "open") for region in REGIONS)
    assert {t["error_class"] for t in transitions} == {"L3_transient"}
    assert all(t["trace_id"] for t in transitions)
