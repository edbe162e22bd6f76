"""Writes export records as JSON lines, CSV or Parquet, piece by piece as they are read."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from fuseboard_collector.reading import Batches

KINDS = ("calls", "attempts", "transitions", "alerts")
JSON_COLUMNS = frozenset({"labels"})
"""Columns that hold JSON text; objects in JSON lines, text elsewhere."""
PARQUET_GROUP_ROWS = 100_000
"""Rows of one row group; about 50 MB before they are packed."""


def write_jsonl(answer: Batches, output: BinaryIO) -> int:
    """Write one JSON object per line; absent values are null. Return the number of records."""
    written = 0
    for row in _rows(answer):
        for name in JSON_COLUMNS & row.keys():
            row[name] = _parsed(row[name])
        output.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        written += 1
    return written


def write_csv(answer: Batches, output: BinaryIO) -> int:
    """Write RFC 4180 CSV with a header; absent values are empty. Return the number of records."""
    writer = csv.writer(_TextLines(output), lineterminator="\r\n")
    writer.writerow(answer.schema.names)
    written = 0
    for row in _rows(answer):
        writer.writerow([_cell(value) for value in row.values()])
        written += 1
    return written


def write_parquet(answer: Batches, output: BinaryIO) -> int:
    """Write Parquet with the store's types. Return the number of records."""
    written = 0
    with pq.ParquetWriter(output, answer.schema) as writer:
        for group in _groups(answer.pieces):
            writer.write_table(pa.Table.from_batches(group, answer.schema))
            written += sum(piece.num_rows for piece in group)
    return written


WRITERS: dict[str, Callable[[Batches, BinaryIO], int]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}


def _groups(pieces: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Gather pieces into row groups of a size that Parquet readers like."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for piece in pieces:
        group.append(piece)
        rows += piece.num_rows
        if rows >= PARQUET_GROUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


class _TextLines:
    """Lets ``csv`` write into a binary stream without owning and closing it."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output

    def write(self, text: str) -> int:
        return self._output.write(text.encode())


def _rows(answer: Batches) -> Iterator[dict[str, object]]:
    for piece in answer.pieces:
        for row in piece.to_pylist():
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


def _cell(value: object) -> object:
    if value is None:
        return ""
    # As JSON has it: most readers of CSV know `true`, only Python says `True`.
    return json.dumps(value) if isinstance(value, bool) else value


def _parsed(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value
