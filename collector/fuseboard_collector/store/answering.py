"""Runs a bound query on a cursor and turns the engine's faults into the store's own errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from fuseboard_collector.errors import QueryParameterError, StoreError, UnknownQueryError
from fuseboard_collector.reading import Batches
from fuseboard_collector.store.named_queries import NamedQuery, load, parsed
from fuseboard_collector.store.rollups.choice import choose

BATCH_ROWS = 10_000

# A relation would spare the copy of an answer's few rows, and costs a second parsing and binding of
# the query, which of the larger ones is half of the time that they take.
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result makes an extra copy")


def reading_query(name: str) -> NamedQuery:
    """Return the query ``queries/<name>.sql`` that readers may run.

    Raises:
        UnknownQueryError: If there is no such query, or it writes.
    """
    query = load(name)
    if not query.reads_only:
        raise UnknownQueryError(f"{name!r} writes; it can't be queried")
    return query


@dataclass(frozen=True, slots=True)
class Answering:
    """How one store answers.

    Attributes:
        memory: The engine's memory limit, for the message when it does not suffice.
        fatal: Called when the engine has broken; returns what to tell the reader.
        notice: Called with every other fault of the engine, which may mean that the file is
            damaged.
    """

    memory: str
    fatal: Callable[[duckdb.FatalException], StoreError]
    notice: Callable[[Exception], object] = lambda _: None

    def table(
        self, cursor: duckdb.DuckDBPyConnection, query: NamedQuery, bound: Mapping[str, object]
    ) -> pa.Table:
        """Return the whole answer."""
        with self._translated(query.name):
            sql, parameters = choose(cursor, query, bound)
            return cursor.execute(parsed(sql), parameters).to_arrow_table()

    def batches(
        self, cursor: duckdb.DuckDBPyConnection, query: NamedQuery, bound: Mapping[str, object]
    ) -> Batches:
        """Return the answer to be read piece by piece while the cursor is open."""
        with self._translated(query.name):
            sql, parameters = choose(cursor, query, bound)
            relation = cursor.sql(sql, params=parameters)
            reader = relation.to_arrow_reader(BATCH_ROWS)
        return Batches(reader.schema, self._pieces(query.name, reader))

    def _pieces(self, name: str, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except (OSError, pa.ArrowException) as error:
                # What goes wrong after the first row comes through Arrow, without its type.
                self.notice(error)
                raise StoreError(f"query {name!r} failed: {first_line(error)}") from error
            yield batch

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except duckdb.OutOfMemoryException as error:
            raise StoreError(
                f"query {name!r} needs more than the store's memory limit of "
                f"{self.memory}; choose a shorter time range or raise the limit"
            ) from error
        except duckdb.FatalException as error:
            raise self.fatal(error) from error
        except (duckdb.DataError, duckdb.InvalidInputException) as error:
            # The SQL is ours and fixed: what the engine finds invalid is a parameter's value.
            raise QueryParameterError(f"query {name!r}: {first_line(error)}") from error
        except duckdb.Error as error:
            self.notice(error)
            raise StoreError(f"query {name!r} failed: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; the engine's are long."""
    return (str(error).splitlines() or [repr(error)])[0]
