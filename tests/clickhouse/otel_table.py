"""The table of traces of the ClickHouse exporter, with the columns that it documents."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

OTEL_TRACES = """
CREATE TABLE otel_traces (
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested (
        TraceId String,
        SpanId String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1))
) ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, SpanName, toDateTime(Timestamp), Timestamp)
"""


def span(start: datetime, **fields: Any) -> dict[str, Any]:
    """Return a row as the exporter inserts it; every attribute is a text."""
    return {
        "Timestamp": f"{start:%Y-%m-%d %H:%M:%S.%f}000", "TraceId": "ab" * 16, "SpanId": "cd" * 8,
        "ParentSpanId": "", "TraceState": "", "SpanName": "execute_tool search",
        "SpanKind": "Internal", "ServiceName": "trip", "ResourceAttributes": {},
        "ScopeName": "some.scope", "ScopeVersion": "1",
        "SpanAttributes": {"gen_ai.operation.name": "execute_tool"}, "Duration": 250_000_000,
        "StatusCode": "Unset", "StatusMessage": "", **fields,
    }  # fmt: skip


def insertion(rows: list[dict[str, Any]]) -> str:
    """Return the statement that inserts rows, naming its columns as the exporter does."""
    columns = ", ".join(rows[0])
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"INSERT INTO otel_traces ({columns}) FORMAT JSONEachRow\n{lines}"
