"""DuckDB: queries are written in it but for the macros."""

from __future__ import annotations

from typing import Final

from fuseboard_collector.store.dialects.alike import ALIKE
from fuseboard_collector.store.dialects.dialect import Dialect

DUCKDB: Final = Dialect(
    name="DuckDB",
    macros={
        **ALIKE,
        # Whether a list parameter that may be null (no restriction) has a value.
        "among": "({0} IS NULL OR list_contains({0}, {1}))",
        "one_of": "{0} IN (SELECT unnest({1}))",
        # The item of the second list at a value's place in the first, else a default.
        "mapped": "COALESCE(list_extract({2}, list_position({1}, {0})), {3})",
        # Start of the bucket (start, start + width] of a time; the width in microseconds.
        "bucket": "make_timestamp(((epoch_us({0}) - 1) // {1}) * {1})",
        # The number of that bucket since the epoch, and its start: a number is made faster.
        "slot": "((epoch_us({0}) - 1) // {1})",
        "slot_start": "make_timestamp({0} * {1})",
        # Microseconds between two times.
        "micros": "(epoch_us({1}) - epoch_us({0}))",
        # Joined to a table: one row for each number from the first to before the second.
        "each_number": ", unnest(range({0}, {1})) AS numbers({2})",
        # The median and the 95th and 99th percentile as a list, each the smallest value that at
        # least this share of the values does not exceed.
        "quantiles": "quantile_disc({0}, [0.5, 0.95, 0.99])",
        # Seconds on a scale of so many steps per octave, from 0 at 1 ms; a time that is no number
        # or without end counts as very long.
        "step": "floor({1} * log2(greatest(least({0}, 1e9) * 1000, 0.001)))",
        # A time and a number of seconds after it, to the microsecond; numbers come from outside,
        # and one beyond the calendar must not fail a whole request.
        "later": "{0} + to_microseconds((least(greatest({1}, 0), 1e9) * 1000000)::BIGINT)",
        # Whether a number is neither infinite nor no number.
        "finite": "isfinite({0})",
        # The value of the newest row, also when it is null.
        "newest": "arg_max_null({0}, {1})",
        # The value of the oldest row.
        "oldest": "arg_min_null({0}, {1})",
        # An item of a row, by its number.
        "item": "struct_extract_at({0}, {1})",
        # Joined to a table: one row for each item of the JSON list in its column.
        "each_item": ", unnest(json_extract({0}, '$[*]')) AS items({1})",
        # A field of a JSON object as text; null if it is missing or null.
        "field": "{0} ->> '$.{1}'",
        # A time from text; null if the text is none.
        "time_of": "TRY_CAST({0} AS TIMESTAMP)",
        # The first characters of a text.
        "cut": "left({0}, {1})",
        # The different texts of a group in one, sorted.
        "joined": "string_agg(DISTINCT {0}, ', ' ORDER BY {0})",
        # The number in a hash of arguments; 0 for none, null for a hash of another kind.
        "args_key": "CASE WHEN {0} IS NULL THEN 0 "
        "WHEN regexp_full_match({0}, 'v1:[0-9a-f]{16}') "
        "THEN nullif(('0x' || substr({0}, 4))::UBIGINT, 0) END",
        # Text into a column of JSON.
        "json": "{0}::JSON",
        # Make room for the one row that a table keeps.
        "forget": "DELETE FROM {0}",
    },
    parameters={},
)
