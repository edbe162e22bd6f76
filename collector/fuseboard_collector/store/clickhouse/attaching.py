"""Reads the table of traces that the OpenTelemetry Collector's ClickHouse exporter writes.

Spans of tools in it become calls by views that run on every insert, and once over what is there
already. A query over the table itself would read its map of attributes as a whole, which takes
seconds for each ten million spans. All values in that map are texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fuseboard import conventions as c
from fuseboard_collector.errors import StoreError
from fuseboard_collector.normalise import own
from fuseboard_collector.normalise.values import count, flag, number, seconds, text
from fuseboard_collector.store.clickhouse.connection import translated
from fuseboard_collector.store.rows import UNNAMED_SCOPE

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

DEFAULT_TABLE: Final = "otel_traces"

KEYS: Final = {
    "fuseboard_tool": c.GEN_AI_TOOL_NAME,
    "fuseboard_operation": c.GEN_AI_OPERATION_NAME,
    "fuseboard_outcome": c.OUTCOME,
    "fuseboard_error_class": c.ERROR_CLASSIFIED_AS,
    "fuseboard_error_type": c.ERROR_TYPE,
    "fuseboard_region": c.CLOUD_REGION,
    "fuseboard_agent": c.GEN_AI_AGENT_NAME,
    "fuseboard_session": c.GEN_AI_CONVERSATION_ID,
}
"""Columns that are added to the table, and their attributes: what one asks for most."""

_NEEDED: Final[dict[str, str | tuple[str, ...]]] = {
    "Timestamp": "DateTime64", "TraceId": "String", "SpanId": "String", "ParentSpanId": "String",
    "TraceState": "String", "SpanName": "LowCardinality", "ServiceName": "LowCardinality",
    "ResourceAttributes": "Map", "ScopeName": "String", "SpanAttributes": "Map",
    "Duration": ("UInt64", "Int64"), "StatusCode": "LowCardinality",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?\Z")
_READINGS: Final = {
    text: "nullIf({0}, '')",
    count: "toInt32OrNull({0})",
    number: "toFloat64OrNull({0})",
    seconds: "toFloat64OrNull({0})",
    flag: "multiIf({0} = 'true', true, {0} = 'false', false, NULL)",
}
_FULL: Final = 2**56
_COMMON: Final = {
    "trace_id": "lower(TraceId)",
    "start": "fromUnixTimestamp64Micro(intDiv(toUnixTimestamp64Nano(Timestamp), 1000), 'UTC')",
    "end": "fromUnixTimestamp64Micro("
    "intDiv(toUnixTimestamp64Nano(Timestamp) + Duration, 1000), 'UTC')",
    "duration_seconds": "Duration / 1e9",
    "received_at": "now64(6, 'UTC')",
    "service": "nullIf(toString(ServiceName), '')",
    "environment": f"nullIf(ResourceAttributes['{c.DEPLOYMENT_ENVIRONMENT}'], '')",
    "version": "toUInt64(toUnixTimestamp64Micro(now64(6, 'UTC'))) * 2",
}


def attach(client: Client, place: str, table: str = DEFAULT_TABLE) -> list[str]:
    """Have spans of tools in a table become calls, those there already and those to come.

    Repeating it does no harm.

    Args:
        client: A connection whose database has fuseboard's tables.
        place: The server, for messages.
        table: The exporter's table, with its database in front if that is another one.

    Returns:
        What was done, one sentence each.

    Raises:
        StoreError: If there is no such table, it is of another make, or the user may not do it;
            the message then has the statements for somebody who may.
    """
    _check(client, place, table)
    todo = statements(table)
    try:
        with translated(place):
            for statement in todo:
                client.command(statement)
            calls, attempts = (reading.fill(client) for reading in _readings(table))
    except StoreError as error:
        script = ";\n".join(todo)
        raise StoreError(
            f"{error}\n\nSomebody with the rights ALTER ADD COLUMN on {table} and CREATE VIEW can "
            f"run these instead:\n\n{script};"
        ) from error
    return [
        f"{table} has the columns {', '.join(KEYS)}",
        f"spans of tools that come into {table} become calls from now on",
        f"{calls} calls and {attempts} attempts were taken from what is in {table} already",
    ]


def statements(table: str) -> list[str]:
    """Return the statements that attach a table; each can be repeated.

    Args:
        table: Its name, checked.
    """
    columns = ", ".join(
        f"ADD COLUMN IF NOT EXISTS {column} {_type(column)} MATERIALIZED SpanAttributes['{key}']"
        for column, key in KEYS.items()
    )
    return [
        f"ALTER TABLE {table} {columns}",
        *(
            f"CREATE MATERIALIZED VIEW IF NOT EXISTS {reading.view} TO {reading.target} AS\n"
            f"{reading.select}"
            for reading in _readings(table)
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Rows of one of our tables out of the exporter's."""

    view: str
    target: str
    table: str
    columns: Mapping[str, str]
    where: str

    @property
    def select(self) -> str:
        columns = ",\n    ".join(f'{sql} AS "{name}"' for name, sql in self.columns.items())
        return f"SELECT\n    {columns}\nFROM {self.table}\nWHERE {self.where}"

    def fill(self, client: Client) -> int:
        """Take what is in the table already; return how many rows that are."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        client.command(f"INSERT INTO {self.target} ({names}) {self.select}")
        found = client.query(
            f"SELECT count() FROM {self.table} WHERE {self.where}"  # noqa: S608
        ).result_rows
        return int(found[0][0])


def _readings(table: str) -> tuple[_Reading, _Reading]:
    name = table.replace(".", "_")
    return (
        _Reading(f"calls_from_{name}", "tool_calls", table, _call_columns(), _IS_CALL),
        _Reading(f"attempts_from_{name}", "attempts", table, _attempt_columns(), _IS_ATTEMPT),
    )


def _type(column: str) -> str:
    return "String" if column == "fuseboard_session" else "LowCardinality(String)"


def _check(client: Client, place: str, table: str) -> None:
    if not _NAME.match(table):
        raise StoreError(
            f"{table!r} is no name of a table, such as otel_traces or otel.otel_traces"
        )
    with translated(place):
        if not client.command(f"EXISTS TABLE {table}"):
            raise StoreError(f"{place} has no table {table}; name the exporter's with --table")
        found = {str(row[0]): str(row[1]) for row in client.query(f"DESCRIBE {table}").result_rows}
    wrong = [name for name, kinds in _NEEDED.items() if not found.get(name, "").startswith(kinds)]
    if wrong:
        raise StoreError(
            f"{table} is not as the ClickHouse exporter makes it: {', '.join(wrong)} should be "
            f"{', '.join(map(str, (_NEEDED[name] for name in wrong)))}. Its variant with JSON "
            "columns can't be attached."
        )


# --- what the columns of calls and attempts are made of --------------------------------------
_IS_OWN = "fuseboard_outcome != ''"
_IS_CALL = f"fuseboard_operation = '{c.EXECUTE_TOOL}' AND SpanAttributes['{c.DUPLICATE}'] != 'true'"
_IS_ATTEMPT = (
    f"SpanAttributes['{c.ATTEMPT_NUMBER}'] != '' AND startsWith(SpanName, '{c.TOOL_ATTEMPT}')"
)

_FAILED = "StatusCode IN ('Error', 'STATUS_CODE_ERROR', 'ERROR')"


def _attribute(key: str) -> str:
    column = next((name for name, attribute in KEYS.items() if attribute == key), None)
    return f"toString({column})" if column else f"SpanAttributes['{key}']"


def _call_columns() -> dict[str, str]:
    """Return each column of a call and its expression; contents of calls are not taken over."""
    columns = {
        column: _READINGS.get(read, "toInt16OrNull({0})" if column == "http_status" else
                              f"nullIf(leftUTF8({{0}}, {c.MAX_MESSAGE_LENGTH}), '')").format(
            _attribute(key)
        )
        for key, (column, read) in own.CALL_COLUMNS.items()
    }  # fmt: skip
    tool = f"substring(SpanName, {len(c.EXECUTE_TOOL) + 2})"
    return {
        **_COMMON,
        **columns,
        "span_id": "lower(SpanId)",
        "parent_span_id": "nullIf(lower(ParentSpanId), '')",
        "tool": f"coalesce({columns['tool']}, nullIf({tool}, ''), '{c.OTHER_LABEL}')",
        "region": _region(),
        "instance": f"nullIf(ResourceAttributes['{c.SERVICE_INSTANCE_ID}'], '')",
        "outcome": f"if({_IS_OWN}, fuseboard_outcome, if({_FAILED}, 'error', 'ok'))",
        "error_class": f"if({_IS_OWN} OR NOT {_FAILED}, {columns['error_class']}, 'unclassified')",
        # What others write there has not been through our redactor.
        "error_message": f"if({_IS_OWN}, {columns['error_message']}, NULL)",
        "attempts": f"if({_IS_OWN}, coalesce({columns['attempts']}, 0), 1)",
        "framework": "nullIf(ScopeName, '')",
        "instrumentation": (
            f"multiIf({_IS_OWN}, '{c.SCOPE_NAME}', "
            f"ScopeName IN ('', '{c.SCOPE_NAME}'), '{UNNAMED_SCOPE}', ScopeName)"
        ),
        "weight": _weight(),
    }


def _attempt_columns() -> dict[str, str]:
    return {
        **_COMMON,
        "call_span_id": "lower(ParentSpanId)",
        "span_id": "lower(SpanId)",
        "number": f"coalesce(toInt32OrNull({_attribute(c.ATTEMPT_NUMBER)}), 1)",
        "delay_seconds": f"coalesce(toFloat64OrNull({_attribute(c.ATTEMPT_DELAY_SECONDS)}), 0)",
        "tool": f"coalesce(nullIf({_attribute(c.GEN_AI_TOOL_NAME)}, ''), '{c.OTHER_LABEL}')",
        "region": _region(),
        "agent": f"nullIf({_attribute(c.GEN_AI_AGENT_NAME)}, '')",
        "result": f"if({_FAILED} OR fuseboard_error_type != '', 'failure', 'success')",
        "error_class": f"nullIf({_attribute(c.ERROR_CLASSIFIED_AS)}, '')",
        "error_type": f"nullIf({_attribute(c.ERROR_TYPE)}, '')",
        "http_status": f"toInt16OrNull({_attribute(c.HTTP_RESPONSE_STATUS_CODE)})",
        "cost": f"toFloat64OrNull({_attribute(c.COST)})",
        "weight": "1.0",
    }


def _region() -> str:
    return (
        f"coalesce(nullIf({_attribute(c.CLOUD_REGION)}, ''), "
        f"nullIf(ResourceAttributes['{c.CLOUD_REGION}'], ''))"
    )


def _weight() -> str:
    """Return how many calls a span stands for, as :func:`normalise.sampling.weight` says."""
    threshold = "extract(TraceState, '(?:^|,)\\\\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,]|$)')"
    number = f"reinterpretAsUInt64(reverse(unhex(concat('00', rightPad({threshold}, 14, '0')))))"
    return f"if({_IS_OWN} OR {threshold} = '', 1., {_FULL} / ({_FULL} - {number}))"
