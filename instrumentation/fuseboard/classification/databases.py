"""Exceptions of SQL databases: SQLSTATE codes, SQLite's codes, and what drivers say themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.classification.http_clients import CONNECT_FAILED, LOST
from fuseboard.classification.inspecting import is_a, names_of, probe
from fuseboard.classification.naming import Named
from fuseboard.classification.network import CONNECT_TIMEOUT, POOL
from fuseboard.classification.sqlstates import LOCKED, judge_sqlstate
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    transient_fault,
)
from fuseboard.record import Verdict

_CREDENTIALS: Final = access_fault("credentials_matcher")
_REQUEST: Final = input_fault("database_request_matcher")
# The driver was used in a way that it does not allow.
_MISUSED: Final = persistent_fault("client_misuse_matcher", ambiguous=True)

_SQLITE: Final = "sqlite_code_matcher"
_SQLITE_REQUEST: Final = input_fault(_SQLITE)
_SQLITE_DENIED: Final = access_fault(_SQLITE)
_SQLITE_BROKEN: Final = persistent_fault(_SQLITE, ambiguous=True)
# The primary result codes of sqlite3.h, without those that its callers never see.
_SQLITE_CODES: Final[Mapping[int, Verdict]] = {
    1: _SQLITE_REQUEST,  # the statement
    2: _SQLITE_BROKEN,  # internal
    3: _SQLITE_DENIED,  # permission
    5: LOCKED,  # busy
    6: LOCKED,  # locked
    7: _SQLITE_BROKEN,  # memory
    8: _SQLITE_DENIED,  # read-only
    9: transient_fault(_SQLITE, ambiguous=True),  # interrupted
    10: _SQLITE_BROKEN,  # input or output
    11: _SQLITE_BROKEN,  # corrupt
    13: _SQLITE_BROKEN,  # full
    14: _SQLITE_BROKEN,  # cannot open
    15: LOCKED,  # locking protocol
    17: transient_fault(_SQLITE, ambiguous=False),  # schema changed
    18: _SQLITE_REQUEST,  # too big
    19: _SQLITE_REQUEST,  # constraint
    20: _SQLITE_REQUEST,  # type mismatch
    21: _SQLITE_BROKEN,  # misuse
    23: _SQLITE_DENIED,  # authorization
    25: _SQLITE_REQUEST,  # parameter out of range
    26: _SQLITE_BROKEN,  # not a database
}

_EXACT: Final = Named(
    {
        "psycopg.errors.ConnectionTimeout": CONNECT_TIMEOUT,
        "psycopg_pool.PoolTimeout": POOL,
        "psycopg_pool.TooManyRequests": POOL,
        "psycopg_pool.PoolClosed": _MISUSED,
        "asyncpg.exceptions._base.InterfaceError": _MISUSED,
        "asyncpg.exceptions._base.InternalClientError": _MISUSED,
        "sqlalchemy.exc.TimeoutError": POOL,
        "sqlalchemy.exc.NoResultFound": _REQUEST,
        "sqlalchemy.exc.MultipleResultsFound": _REQUEST,
        "sqlalchemy.exc.PendingRollbackError": _MISUSED,
    }
)

# The classes of the DB-API that mean the same with every driver; asked when no code says more.
_DB_API: Final = {
    "ProgrammingError": _REQUEST,
    "DataError": _REQUEST,
    "IntegrityError": _REQUEST,
    "NotSupportedError": _REQUEST,
    "InterfaceError": _MISUSED,
    "InternalError": _MISUSED,
}
# SQLAlchemy's classes of these names wrap a driver's own, which says more.
_DRIVERS: Final = ("psycopg", "psycopg2", "sqlite3")
_GENERAL: Final = Named(
    {
        **{f"{driver}.{name}": verdict for driver in _DRIVERS for name, verdict in _DB_API.items()},
        **{f"{driver}.OperationalError": LOST for driver in _DRIVERS if driver != "sqlite3"},
    }
)


def classify_database(error: BaseException) -> Verdict | None:
    """Judge an exception of a database or its driver, or return None."""
    by_name = _EXACT.of(type(error))
    if by_name is not None:
        return by_name
    names = names_of(type(error))
    if "sqlite3.Error" in names:
        return _judge_sqlite(error)
    # psycopg, asyncpg and mysql.connector; psycopg2.
    for attribute in ("sqlstate", "pgcode"):
        code = probe(error, attribute)
        if isinstance(code, str):
            verdict = judge_sqlstate(code)
            if verdict is not None:
                return verdict
    return _judge_failed_login(error) if "psycopg.OperationalError" in names else None


def classify_database_connection(error: BaseException) -> Verdict | None:
    """Judge an exception by its class of the DB-API, which gives no more than the direction."""
    general = _GENERAL.of(type(error))
    if general is LOST and probe(error, "pgconn") is not None:
        return CONNECT_FAILED  # it was raised while connecting
    return general


def _judge_sqlite(error: BaseException) -> Verdict | None:
    code = probe(error, "sqlite_errorcode")
    # The low byte is the primary code, the rest refines it.
    return _SQLITE_CODES.get(code & 0xFF) if isinstance(code, int) else None


def _judge_failed_login(error: BaseException) -> Verdict | None:
    """Find out whether a connection failed at the password; libpq gives no code for that."""
    connection = probe(error, "pgconn")
    if connection is None:
        return None
    asked = (probe(connection, "needs_password"), probe(connection, "used_password"))
    return _CREDENTIALS if any(is_a(flag, bool, int) and flag for flag in asked) else None
