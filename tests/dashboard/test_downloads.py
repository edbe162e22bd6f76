"""Downloads: the rows shown, safe in a spreadsheet, times in UTC."""

from __future__ import annotations

import csv
import io
from datetime import datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.dashboard.conftest import WINDOW, open_page, serve

from fuseboard_collector.store import Store
from fuseboard_dashboard import downloads

FRAME = pd.DataFrame(
    {
        "end": pd.to_datetime([datetime(2026, 1, 5, 12, 0, 0, 250_000), None]),
        "tool": ["=HYPERLINK(1)", 'a "b",\nc'],
        "delay": [-1.5, None],
    }
)


def _read(frame: pd.DataFrame) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(downloads.to_csv(frame).decode(), newline="")))


def test_csv_has_times_in_utc_and_gaps_where_nothing_is() -> None:
    assert _read(FRAME) == [
        {"end": "2026-01-05T12:00:00.250000Z", "tool": "'=HYPERLINK(1)", "delay": "-1.5"},
        {"end": "", "tool": 'a "b",\nc', "delay": ""},
    ]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_in_csv_is_a_formula(first: str) -> None:
    (row,) = _read(pd.DataFrame({f"{first}name": [f"{first}1+1"]}))
    assert row == {f"'{first}name": f"'{first}1+1"}


def test_parquet_holds_texts_as_they_are_and_times_with_their_zone() -> None:
    table = pq.read_table(io.BytesIO(downloads.to_parquet(FRAME)))
    assert table.schema.field("end").type == pa.timestamp("us", tz="UTC")
    assert table["tool"].to_pylist() == list(FRAME["tool"])
    assert table["delay"].to_pylist() == [-1.5, None]


def test_a_file_is_named_by_page_table_window_and_zone() -> None:
    assert downloads.file_stem("errors", "calls", WINDOW) == (
        "fuseboard-errors-calls-20260105T120000-20260105T121500-UTC"
    )


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("errors", {"matrix", "kinds", "arguments", "calls"}),
        ("breakers", {"blast", "states", "transitions"}),
        ("retries", {"tools", "calls"}),
        ("latency", {"tools", "calls"}),
        ("alerts", {"episodes", "history", "rules"}),
        ("tool", {"regions", "calls"}),
    ],
)
def test_tables_offer_their_rows_and_nothing_is_made_before_a_click(
    page: str, tables: set[str], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(frame: pd.DataFrame) -> bytes:
        raise AssertionError("made before anybody asked")

    monkeypatch.setattr(downloads, "to_csv", never)
    monkeypatch.setattr(downloads, "to_parquet", never)
    serve(store)
    app = open_page(page, {"tool": "alpha"})
    assert not app.exception
    keys = {str(button.key) for button in app.get("download_button")}
    wanted = {f"fb_download_{page}_{name}_{end}" for name in tables for end in ("csv", "parquet")}
    assert keys == wanted
