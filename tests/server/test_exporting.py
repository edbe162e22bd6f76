from __future__ import annotations

import csv
import io
import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseboard_collector.reading import Batches
from fuseboard_server.exporting import PARQUET_GROUP_ROWS, WRITERS

PIECE_ROWS = 1000
MOMENT = datetime(2027, 3, 1, 12, 30, 15, 42)


def table() -> pa.Table:
    return pa.table(
        {
            "time": pa.array([MOMENT, None], pa.timestamp("us")),
            "tool": ['say "hi", then\nleave', "ö"],
            "value": [0.25, None],
            "count": pa.array([3, None], pa.int32()),
            "retryable": [True, None],
            "labels": ['{"job": "a", "tool": "b"}', None],
        }
    )


def write(form: str, what: pa.Table) -> bytes:
    stream = io.BytesIO()
    answer = Batches(what.schema, iter(what.to_batches(max_chunksize=PIECE_ROWS)))
    assert WRITERS[form](answer, stream) == what.num_rows
    return stream.getvalue()


def test_json_lines_keep_types_and_write_null_for_absent() -> None:
    first, second = (json.loads(line) for line in write("jsonl", table()).splitlines())
    assert first == {
        "time": "2027-03-01T12:30:15.000042Z",
        "tool": 'say "hi", then\nleave',
        "value": 0.25,
        "count": 3,
        "retryable": True,
        "labels": {"job": "a", "tool": "b"},
    }
    assert list(first) == table().column_names
    assert second == {**dict.fromkeys(first), "tool": "ö"}


def test_json_lines_are_utf8_one_line_each() -> None:
    written = write("jsonl", table())
    assert written.count(b"\n") == 2
    assert "ö".encode() in written


def test_csv_quotes_and_leaves_absent_empty() -> None:
    rows = list(csv.reader(io.StringIO(write("csv", table()).decode(), newline="")))
    assert rows[0] == table().column_names
    assert rows[1] == [
        "2027-03-01T12:30:15.000042Z", 'say "hi", then\nleave', "0.25", "3", "true",
        '{"job": "a", "tool": "b"}',
    ]  # fmt: skip
    assert rows[2] == ["", "ö", "", "", "", ""]


def test_parquet_keeps_the_columns_and_their_types() -> None:
    read = pq.read_table(io.BytesIO(write("parquet", table())))
    assert read.schema.equals(table().schema)
    assert read.to_pylist() == table().to_pylist()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_json_can_not_say_is_null(value: float) -> None:
    assert json.loads(write("jsonl", pa.table({"value": [value]}))) == {"value": None}


def test_times_with_a_zone_become_utc() -> None:
    zoned = pa.table({"time": pa.array([MOMENT], pa.timestamp("us", "Europe/Oslo"))})
    (row,) = (json.loads(line) for line in write("jsonl", zoned).splitlines())
    assert row["time"] == "2027-03-01T12:30:15.000042Z"


@pytest.mark.parametrize("number", [PIECE_ROWS * 2 + 3, PARQUET_GROUP_ROWS * 2 + 3])
def test_more_rows_than_a_piece_are_all_written(number: int) -> None:
    big = pa.table({"n": list(range(number))})
    lines = write("jsonl", big).splitlines()
    assert [json.loads(line)["n"] for line in lines] == list(range(number))
    parquet = pq.ParquetFile(io.BytesIO(write("parquet", big)))
    assert parquet.read().column("n").to_pylist() == list(range(number))
    assert parquet.num_row_groups == 1 + number // (PARQUET_GROUP_ROWS + 1)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_an_empty_table_is_written_too(form: str) -> None:
    written = write(form, table().slice(0, 0))
    if form == "jsonl":
        assert written == b""
    elif form == "csv":
        assert written.decode().strip().split(",") == table().column_names
    else:
        assert pq.read_table(io.BytesIO(written)).num_rows == 0
