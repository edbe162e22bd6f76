"""Downloads of what a table shows, made only when somebody asks for them.

Times are UTC: ISO 8601 in CSV, timestamps with a zone in Parquet. A text in CSV that a spreadsheet
would run as a formula begins with an apostrophe; Parquet holds every text as it is.
"""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import streamlit as st

from fuseboard_dashboard.language import n
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


def download(view: View, frame: pd.DataFrame, page: str, name: str) -> None:
    """Offer the rows of a table as CSV and Parquet.

    Args:
        view: For the window in the files' names.
        frame: The rows as the query gave them, cut to those shown.
        page: Name of the page, as in its URL.
        name: Name of the table, unique on the page.
    """
    stem = file_stem(page, name, view.window)
    key = f"fb_download_{page}_{name}"
    forms = (("CSV", "csv", "text/csv", to_csv),
             ("Parquet", "parquet", "application/vnd.apache.parquet", to_parquet))  # fmt: skip
    with st.container(horizontal=True, gap="small", horizontal_alignment="right"):
        for title, ending, kind, make in forms:
            st.download_button(
                title,
                data=partial(make, frame),
                file_name=f"{stem}.{ending}",
                mime=kind,
                key=f"{key}_{ending}",
                type="tertiary",
                on_click="ignore",
                icon=":material/download:",
                help=n(
                    "This {count} row, times in UTC",
                    "These {count:,} rows, times in UTC",
                    len(frame),
                ),
            )


def file_stem(page: str, name: str, window: Window) -> str:
    """Return a file's name without its ending: page, table, both ends of the window, zone."""
    ends = (end.strftime("%Y%m%dT%H%M%S") for end in (window.since, window.until))
    return "-".join(("fuseboard", page, name, *ends, "UTC"))


def to_csv(frame: pd.DataFrame) -> bytes:
    """Return rows as CSV in UTF-8, safe to open in a spreadsheet."""
    shown = pd.DataFrame({name: _csv_column(frame[name]) for name in frame.columns})
    return shown.rename(columns=_unarmed).to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode()


def to_parquet(frame: pd.DataFrame) -> bytes:
    """Return rows as Parquet."""
    zoned = frame.assign(**{name: _in_utc(frame[name]) for name in _times(frame)})
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(zoned, preserve_index=False), sink)
    return sink.getvalue()


def _times(frame: pd.DataFrame) -> list[str]:
    return [
        str(name) for name in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[name])
    ]


def _in_utc(times: pd.Series) -> pd.Series:
    """Return times with their zone; the store gives them in UTC without one."""
    zoned: pd.Series = (
        times.dt.tz_localize("UTC") if times.dt.tz is None else times.dt.tz_convert("UTC")
    )
    return zoned


def _csv_column(values: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(values):
        return _in_utc(values).map(_iso)
    return values.map(_unarmed)


def _iso(moment: pd.Timestamp) -> str:
    return "" if pd.isna(moment) else moment.isoformat().replace("+00:00", "Z")


def _unarmed(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value
