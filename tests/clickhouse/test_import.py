"""An import into ClickHouse, and again: what is there already is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuseboard_collector.store import AnyStore
from fuseboard_collector.store.clickhouse.store import ClickHouseStore
from fuseboard_server.importing import IntoStore, import_file

RECORDED = Path(__file__).parents[1] / "data" / "otlp" / "langchain-otelgenai.ok.pb"


def own_call(number: int) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        "fuseboard.outcome": "ok",
    }  # fmt: skip
    start = 1_796_000_000_000_000_000 + number
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": f"{number:016x}",
        "name": "execute_tool search", "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 1_000_000),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }  # fmt: skip


def test_a_second_import_finds_everything_there(store: ClickHouseStore, tmp_path: Path) -> None:
    scope = {"scope": {"name": "fuseboard"}, "spans": [own_call(n) for n in range(1, 21)]}
    ours = tmp_path / "ours.json"
    ours.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}))
    opened: AnyStore = store
    to = IntoStore(opened, "the database")
    for file in (ours, RECORDED):
        first, second = (import_file(file, to, lambda _: None) for _ in range(2))
        assert (first.repeated, first.failure, first.rejected.total()) == (0, "", 0)
        assert second.repeated == sum(second.records.values()) == sum(first.records.values())
    everything = {"since": None, "until": None}
    calls = store.query("export_calls", everything).to_pylist()
    assert sum(call["tool"] == "search" for call in calls) >= 20
    assert len({(call["trace_id"], call["span_id"]) for call in calls}) == len(calls)
