"""Asks a ClickHouse server a named query; the answer has the types of the embedded store's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from fuseboard_collector.reading import Batches
from fuseboard_collector.store.answering import BATCH_ROWS, reading_query
from fuseboard_collector.store.clickhouse.connection import SETTINGS, translated
from fuseboard_collector.store.clickhouse.values import encoded
from fuseboard_collector.store.dialects import CLICKHOUSE
from fuseboard_collector.store.named_queries import source, text

Variants: TypeAlias = tuple[str, ...]

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client


@cache
def _rendered(name: str, variants: Variants) -> str:
    return text(name, dialect=CLICKHOUSE, variants=variants).rstrip().rstrip(";")


@cache
def _has_variant(name: str, variant: str) -> bool:
    return source(name) != source(name, variants=(variant,))


def _variants(client: Client, name: str, bound: Mapping[str, object]) -> Variants:
    """Return how a query is to be put: there are no rollups here, so every answer is exact."""
    if bound.get("kind") == "slow":
        return ("slowest",)
    if bound.get("since") is None or bound.get("until") is None:
        return ()
    if not _has_variant(name, "weighted"):
        return ()
    sampled = text("has_sampled", "rollups/sql", CLICKHOUSE).rstrip().rstrip(";")
    values = encoded(name, source("has_sampled", "rollups/sql"), bound)
    rows = client.query(sampled, values, dict(SETTINGS)).result_rows
    return ("weighted",) if rows and rows[0][0] else ()


def _question(
    client: Client, name: str, parameters: Mapping[str, object] | None
) -> tuple[str, dict[str, object]]:
    """Return the text of a query and the values of its parameters."""
    bound = reading_query(name).bind(parameters)
    values = encoded(name, source(name), bound)
    return _rendered(name, _variants(client, name, bound)), values


def table(
    client: Client, place: str, name: str, parameters: Mapping[str, object] | None
) -> pa.Table:
    """Return the whole answer of ``queries/<name>.sql``.

    Args:
        client: A connection.
        place: The server, for messages.
        name: The query.
        parameters: As :meth:`fuseboard_collector.reading.Reader.query` takes them.
    """
    with translated(place, f"query {name!r}"):
        return _plain(client.query_arrow(*_question(client, name, parameters), dict(SETTINGS)))


@contextmanager
def batches(
    client: Client, place: str, name: str, parameters: Mapping[str, object] | None
) -> Iterator[Batches]:
    """Yield the answer to be read piece by piece inside the block."""
    with translated(place, f"query {name!r}"):
        answer = client.query_arrow_stream(*_question(client, name, parameters), dict(SETTINGS))
    with answer as pieces:
        first = _next(pieces, place, name)
        if first is None:
            # Without rows there is no piece to tell the columns.
            schema = table(client, place, name, parameters).schema
            yield Batches(schema, iter(()))
            return
        yield Batches(first.schema, _pieces(first, pieces, place, name))


def _pieces(
    first: pa.Table, rest: Iterator[pa.Table], place: str, name: str
) -> Iterator[pa.RecordBatch]:
    piece: pa.Table | None = first
    while piece is not None:
        yield from piece.to_batches(BATCH_ROWS)
        piece = _next(rest, place, name)


def _next(pieces: Iterator[pa.Table], place: str, name: str) -> pa.Table | None:
    with translated(place, f"query {name!r}"):
        piece = next(pieces, None)
    if piece is None:
        return None
    return _plain(pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece)


def _plain(answer: pa.Table) -> pa.Table:
    """Return an answer with times without a zone, and no number type that readers don't know."""
    return answer.cast(
        pa.schema([pa.field(item.name, _plain_type(item.type)) for item in answer.schema])
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_dictionary(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return pa.string()
    return kind
