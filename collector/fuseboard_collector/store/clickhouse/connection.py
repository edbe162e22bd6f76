"""Connections to a ClickHouse server, and its faults as the store's own errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from fuseboard_collector.errors import (
    QueryParameterError,
    StoreAwayError,
    StoreBusyError,
    StoreError,
)
from fuseboard_collector.store.clickhouse.address import Address

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

Connect: TypeAlias = "Callable[[], Client]"
"""Opens a connection; tests open one to an engine in their own process."""

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 60

SETTINGS: Final[dict[str, object]] = {
    # Of rows with one key the newest: see the schema.
    "final": 1,
    # What DuckDB and the standard take for granted.
    "join_use_nulls": 1,
    "aggregate_functions_null_for_empty": 1,
    "cast_keep_nullable": 1,
    "union_default_mode": "DISTINCT",
    "prefer_column_name_to_alias": 1,
    "session_timezone": "UTC",
    # Else an expression that is used several times is worked out several times, which makes some
    # queries a hundred times slower.
    "enable_materialized_cte": 1,
}
"""Of every query; a user whose profile forbids to change settings can't use them."""

_ACCESS = {192, 193, 194, 497, 516}
_MISSING = {60, 81}
_BUSY = {159, 202, 241, 252, 439}
_BAD_VALUE = {6, 27, 38, 41, 53, 70, 72, 131, 321, 349, 407, 457}
_READ_ONLY = 164


def connecting(address: Address) -> Connect:
    """Return what opens connections to a server.

    Raises:
        ModuleNotFoundError: If the extra ``clickhouse`` is not installed.
    """
    import clickhouse_connect

    def connect() -> Client:
        with translated(str(address)):
            return clickhouse_connect.get_client(
                host=address.host,
                port=address.port,
                username=address.user,
                password=address.password,
                secure=address.secure,
                # Several threads ask at once; a session would have them wait for each other.
                autogenerate_session_id=False,
                connect_timeout=CONNECT_SECONDS,
                send_receive_timeout=ANSWER_SECONDS,
                query_retries=0,
            )

    return connect


@contextmanager
def translated(place: str, what: str = "") -> Iterator[None]:
    """Turn the client's errors into ours.

    Args:
        place: The server, without its password.
        what: What was being done, for example ``query 'page_totals'``.
    """
    from clickhouse_connect.driver.exceptions import ClickHouseError

    try:
        yield
    except ClickHouseError as error:
        raise _ours(error, place, f"{what}: " if what else "") from error
    except (OSError, UnicodeError) as error:
        if isinstance(error, UnicodeError):
            raise QueryParameterError(f"{what}: {error}") from error
        raise _away(place, error) from error


def _ours(error: Exception, place: str, what: str) -> StoreError:
    code, said = getattr(error, "code", None), first_line(error)
    if code in _ACCESS:
        return StoreError(
            f"{what}{place} does not let this user do that: {said}. Check the user, the password "
            "and the user's rights."
        )
    if code in _MISSING:
        return StoreError(
            f"{what}{place} lacks a table of fuseboard's: {said}. Create what is missing with "
            "`fuseboard store init --store URL`."
        )
    if code == _READ_ONLY:
        return StoreError(
            f"{what}{place} lets this user change no settings: {said}. Give the user "
            "a profile with readonly = 0, or readonly = 2 for reading."
        )
    if code in _BUSY:
        return StoreBusyError(
            f"{what}{place} has not the time or memory for it: {said}. Choose a shorter time "
            "range, or raise the server's limits."
        )
    if code in _BAD_VALUE:
        return QueryParameterError(f"{what}{said}")
    if code is None:
        return _away(place, error)
    return StoreError(f"{what}{place} failed: {said}")


def _away(place: str, error: Exception) -> StoreAwayError:
    return StoreAwayError(f"no answer from {place}: {first_line(error)}")


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, shortened."""
    return (str(error).splitlines() or [repr(error)])[0][:300]
