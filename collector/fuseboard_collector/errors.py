"""The exceptions of the collector and its store."""

from __future__ import annotations


class CollectorError(Exception):
    """Base of every exception that the collector raises."""


class StoreError(CollectorError):
    """The store can't do what was asked; the message says what to do next."""


class StoreInUseError(StoreError):
    """Another process holds the data file.

    Attributes:
        pid: The process that holds it, if it could be read.
    """

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreVersionError(StoreError):
    """The data file was written by a newer version of fuseboard or of DuckDB."""


class StoreDamagedError(StoreError):
    """The data file can't be read."""


class StoreBusyError(StoreError):
    """The write queue is full; the sender should try again later."""


class AccessDeniedError(StoreError):
    """The collector wants a token, or another one."""


class StoreReadOnlyError(StoreBusyError):
    """The data file is damaged, or being compacted: it can be read, but nothing is stored.

    Attributes:
        what: What was found damaged, or what is going on; empty if another process said it.
    """

    def __init__(self, message: str, what: str = "") -> None:
        super().__init__(message)
        self.what = what


class UnknownQueryError(StoreError):
    """There is no query of that name."""


class QueryParameterError(StoreError):
    """A query was given too few, too many or wrong parameters."""


class StoreAwayError(StoreBusyError):
    """The database server does not answer; it is tried again."""
