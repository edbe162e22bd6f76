"""Writes export records (CONTRACT's columns) as JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

KINDS = ("calls", "attempts", "transitions", "alerts")
JSON_COLUMNS = frozenset({"labels"})
"""Columns that hold JSON text; objects in JSON lines, text elsewhere."""
BATCH_ROWS = 10_000


def write_jsonl(table: pa.Table, output: BinaryIO) -> None:
    """Write one JSON object per line; absent values are null."""
    for row in _rows(table):
        for name in JSON_COLUMNS & row.keys():
            row[name] = _parsed(row[name])
        output.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def write_csv(table: pa.Table, output: BinaryIO) -> None:
    """Write RFC 4180 CSV with a header; absent values are empty."""
    writer = csv.writer(_TextLines(output), lineterminator="\r\n")
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow(["" if value is None else value for value in row.values()])


def write_parquet(table: pa.Table, output: BinaryIO) -> None:
    """Write Parquet with the store's types."""
    pq.write_table(table, output)


WRITERS: dict[str, Callable[[pa.Table, BinaryIO], None]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}


class _TextLines:
    """Lets ``csv`` write into a binary stream without owning and closing it."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output

    def write(self, text: str) -> int:
        return self._output.write(text.encode())


def _rows(table: pa.Table) -> Iterator[dict[str, object]]:
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        for row in batch.to_pylist():
            yield {name: _plain(value) for name, value in row.items()}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        # The store's times are UTC without a zone.
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _parsed(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value
