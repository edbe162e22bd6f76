"""How everything outside the store reads it: named queries with bound parameters.

Pages, the alert evaluator and exports depend on this protocol alone, so that they run
against the embedded store, a remote collector or a test's own data alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


class Reader(Protocol):
    """Answers named queries.

    Attributes:
        store_id: Tells stores apart in caches.
    """

    store_id: str

    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        """Run ``queries/<name>.sql`` with bound parameters.

        Args:
            name: File name of the query without its suffix, for example ``board_tools``.
            parameters: Values for the query's ``$name`` parameters; every parameter of the
                query must be given, None included. Times are UTC.

        Returns:
            The whole result; columns are the query's.

        Raises:
            UnknownQueryError: If there is no query of that name.
            StoreError: If the store can't answer.
        """


@dataclass(frozen=True, slots=True)
class Batches:
    """An answer that is read piece by piece.

    Attributes:
        schema: The columns, known before the first row.
        pieces: The rows in order. Reading on raises a StoreError if the answer can't be had to
            its end.
    """

    schema: pa.Schema
    pieces: Iterator[pa.RecordBatch]


class StreamingReader(Reader, Protocol):
    """A reader that also gives answers of any size in little memory."""

    def stream(
        self, name: str, parameters: Mapping[str, object] | None = None
    ) -> AbstractContextManager[Batches]:
        """Run a named query as :meth:`query` does; read its answer inside the ``with`` block.

        Raises:
            UnknownQueryError: If there is no query of that name.
            StoreError: If the store can't answer.
        """
