"""The store: typed rows in, named queries out, one DuckDB file or a ClickHouse database."""

from fuseboard_collector.store.at_rest import RestingStore, open_at_rest
from fuseboard_collector.store.opening import open_any
from fuseboard_collector.store.rows import (
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Span,
    ToolCall,
)
from fuseboard_collector.store.store import DATA_FILE, Store, open_store
from fuseboard_collector.store.surface import AnyStore

__all__ = [
    "DATA_FILE",
    "AnyStore",
    "Attempt",
    "Batch",
    "BreakerTransition",
    "Heartbeat",
    "RestingStore",
    "Span",
    "Store",
    "ToolCall",
    "open_any",
    "open_at_rest",
    "open_store",
]
