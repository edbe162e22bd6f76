"""ClickHouse, from version 26.3 on."""

from __future__ import annotations

from typing import Final

from fuseboard_collector.store.dialects.alike import ALIKE
from fuseboard_collector.store.dialects.dialect import Dialect

CLICKHOUSE: Final = Dialect(
    name="ClickHouse",
    macros={
        **ALIKE,
        # A list can't be null here; a null item stands for it.
        "among": "(has({0}, NULL) OR has({0}, {1}))",
        "one_of": "has({1}, {0})",
        "mapped": "if(has({1}, {0}), arrayElement({2}, indexOf({1}, {0})), {3})",
        "bucket": "fromUnixTimestamp64Micro("
        "intDiv(toUnixTimestamp64Micro({0}) - 1, {1}) * {1}, 'UTC')",
        "slot": "intDiv(toUnixTimestamp64Micro({0}) - 1, {1})",
        "slot_start": "fromUnixTimestamp64Micro({0} * {1}, 'UTC')",
        "micros": "(toUnixTimestamp64Micro({1}) - toUnixTimestamp64Micro({0}))",
        "each_number": " ARRAY JOIN range({0}, {1}) AS {2}",
        # quantileExact takes the next higher value.
        "quantiles": "["
        + ", ".join(
            "arrayElementOrNull(arraySort(groupArray({0})), "
            f"greatest(1, toInt64(ceil({share} * count({{0}})))))"
            for share in (0.5, 0.95, 0.99)
        )
        + "]",
        "step": "floor({1} * log2(greatest(least(if(isFinite({0}), {0}, 1e9), 1e9) * 1000, "
        "0.001)))",
        # What has no end ends where it began.
        "later": "addMicroseconds({0}, toInt64(if(abs({1}) < 1e12, round({1} * 1000000), 0)))",
        "finite": "isFinite({0})",
        # Null values are passed over unless they are inside of something.
        "newest": "argMax(tuple({0}), {1}).1",
        "oldest": "argMin(tuple({0}), {1}).1",
        "item": "tupleElement({0}, {1})",
        "each_item": " ARRAY JOIN JSONExtractArrayRaw(coalesce({0}, '[]')) AS {1}",
        "field": "JSONExtract({0}, '{1}', 'Nullable(String)')",
        "time_of": "parseDateTime64BestEffortOrNull({0}, 6, 'UTC')",
        "cut": "leftUTF8({0}, {1})",
        "joined": "nullIf(arrayStringConcat(arraySort(groupUniqArray({0})), ', '), '')",
        "args_key": "multiIf({0} IS NULL, 0, match({0}, '^v1:[0-9a-f]{16}$'), "
        "nullIf(reinterpretAsUInt64(reverse(unhex(substring({0}, 4)))), 0), NULL)",
        "json": "{0}",
        # The engine of such tables keeps the newest row alone.
        "forget": "",
    },
    parameters={
        "TIMESTAMP": "{{name}:Nullable(DateTime64(6, 'UTC'))}",
        "VARCHAR": "{{name}:Nullable(String)}",
        "VARCHAR[]": "{{name}:Array(Nullable(String))}",
        "BIGINT": "{{name}:Nullable(Int64)}",
        "DOUBLE": "{{name}:Nullable(Float64)}",
        "DOUBLE[]": "{{name}:Array(Nullable(Float64))}",
        "BOOLEAN": "{{name}:Nullable(Bool)}",
    },
)
