"""How many records one request may have, however few bytes they take."""

from __future__ import annotations

from typing import Final

from fuseboard_collector.receiver.errors import TooLargeError

MAX_RECORDS: Final = 50_000
"""Records and groups of records; what a store can make durable before a client stops waiting.

Collectors send 8192 at once. 32 MiB can hold a million empty spans: 1.6 GB and a minute.
"""

MAX_EVENTS: Final = 200_000
"""Events of all spans of a protobuf request: one of two bytes takes two hundred when decoded."""

MAX_JSON_CONTAINERS: Final = 1_000_000
"""Objects and lists of a JSON body; a span has about 45. While they are made nothing else runs."""


class Allowance:
    """What is left of the records that one request may have.

    Attributes:
        left: How many; below 0 the request has to be refused.
        events: How many events of spans, likewise.
    """

    __slots__ = ("events", "left")

    def __init__(self) -> None:
        self.left = MAX_RECORDS
        self.events = MAX_EVENTS

    def spend(self, records: int = 0) -> None:
        """Count a group and the records in it.

        Raises:
            TooLargeError: If the request has more than it may.
        """
        self.left -= records + 1
        if self.left < 0:
            raise too_many()

    def spend_events(self, events: int = 1) -> None:
        """Count events of spans.

        Raises:
            TooLargeError: If the request has more than it may.
        """
        self.events -= events
        if self.events < 0:
            raise TooLargeError(
                f"the request has more than {MAX_EVENTS} events: send smaller batches"
            )


def too_many() -> TooLargeError:
    """Return the refusal of a request with too many records."""
    return TooLargeError(f"the request has more than {MAX_RECORDS} records: send smaller batches")
