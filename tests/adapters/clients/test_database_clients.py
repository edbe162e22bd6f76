"""Exceptions that clients of databases really raise: PostgreSQL's, SQLAlchemy, MongoDB."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

import asyncpg
import bson
import psycopg
import psycopg_pool
import pymongo
import pytest
import sqlalchemy
import sqlalchemy.orm
from tests.instrumentation.classification.database_talk import mongo, postgres
from tests.instrumentation.classification.expected import (
    AMBIGUOUS,
    SAFE,
    Row,
    each,
    l1,
    l2,
    l3,
    l4,
    l5,
)
from tests.instrumentation.classification.places import PATIENCE, Places, without_names


def address(port: int, host: str = "127.0.0.1") -> str:
    return (
        f"host={host} port={port} user=u password=p dbname=d connect_timeout=2 gssencmode=disable"
    )


def by_psycopg(port: int, host: str = "127.0.0.1") -> None:
    with psycopg.connect(address(port, host), autocommit=True) as connection:
        connection.execute("select 1")


def by_psycopg_async(port: int) -> None:
    async def ask() -> None:
        async with await psycopg.AsyncConnection.connect(address(port), autocommit=True) as line:
            await line.execute("select 1")

    asyncio.run(ask())


def by_asyncpg(port: int, **options: Any) -> None:
    async def ask() -> None:
        line = await asyncpg.connect(
            host="127.0.0.1", port=port, user="u", password="p", database="d", ssl=False,
            timeout=options.pop("timeout", 5),
        )  # fmt: skip
        try:
            await line.execute("select 1")
        finally:
            line.terminate()

    asyncio.run(ask())


def by_sqlalchemy(port: int) -> None:
    url = f"postgresql+psycopg://u:p@127.0.0.1:{port}/d?gssencmode=disable"
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("select 1")
    finally:
        engine.dispose()


def from_sqlite(*statements: str) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(sqlalchemy.text(statement))


def from_a_full_pool_of_sqlalchemy(places: Places) -> None:
    engine = sqlalchemy.create_engine(
        f"sqlite:///{places.folder}/x.db",
        poolclass=sqlalchemy.QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=0.05,
    )
    with engine.connect():
        engine.connect()


def one_of_none(places: Places) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("select 1 where 0")).scalar_one()


def from_a_waiting_pool(places: Places) -> None:
    port = places.refused_port
    with psycopg_pool.ConnectionPool(address(port), min_size=1, open=True, timeout=0.05) as pool:
        pool.getconn()


def from_a_closed_pool(places: Places) -> None:
    pool = psycopg_pool.ConnectionPool(address(1), open=False)
    pool.close()
    pool.getconn()


def greeting_cut(line: socket.socket) -> None:
    line.recv(1024)


ERRORS = "psycopg.errors."
PSYCOPG = [
    Row("psycopg: refused", lambda at: by_psycopg(at.refused_port), "psycopg.OperationalError",
        l3("connect_matcher", SAFE)),
    Row("psycopg, async: refused", lambda at: by_psycopg_async(at.refused_port),
        "psycopg.OperationalError", l3("connect_matcher", SAFE)),
    Row("psycopg: cut while connecting", lambda at: by_psycopg(at.listen(greeting_cut)),
        "psycopg.OperationalError", l3("connect_matcher", SAFE)),
    Row("psycopg: connect time-out", lambda at: by_psycopg(at.listen(at.until_over)),
        f"{ERRORS}ConnectionTimeout", l3("connect_timeout_matcher", SAFE)),
    Row("psycopg: wrong password",
        lambda at: by_psycopg(at.listen(postgres("28P01", at_login=True, asks_password=True))),
        "psycopg.OperationalError", l2("credentials_matcher")),
    Row("psycopg: starting up, at login",
        lambda at: by_psycopg(at.listen(postgres("57P03", at_login=True))),
        "psycopg.OperationalError", l3("connect_matcher", SAFE)),
    Row("psycopg: pool waits in vain", from_a_waiting_pool, "psycopg_pool.PoolTimeout",
        l3("pool_exhausted_matcher", SAFE)),
    Row("psycopg: pool closed", from_a_closed_pool, "psycopg_pool.PoolClosed",
        l4("client_misuse_matcher", AMBIGUOUS)),
]  # fmt: skip

# SQLSTATE → psycopg's class, asyncpg's class, what is said of it.
STATES = {
    "23505": ("UniqueViolation", "UniqueViolationError", l1("sqlstate_matcher")),
    "23503": ("ForeignKeyViolation", "ForeignKeyViolationError", l1("sqlstate_matcher")),
    "22P02": ("InvalidTextRepresentation", "InvalidTextRepresentationError",
              l1("sqlstate_matcher")),
    "42601": ("SyntaxError", "PostgresSyntaxError", l1("sqlstate_matcher")),
    "42P01": ("UndefinedTable", "UndefinedTableError", l1("sqlstate_matcher")),
    "0A000": ("FeatureNotSupported", "FeatureNotSupportedError", l1("sqlstate_matcher")),
    "42501": ("InsufficientPrivilege", "InsufficientPrivilegeError", l2("sqlstate_matcher")),
    "28P01": ("InvalidPassword", "InvalidPasswordError", l2("sqlstate_matcher")),
    "25006": ("ReadOnlySqlTransaction", "ReadOnlySQLTransactionError", l2("sqlstate_matcher")),
    "40001": ("SerializationFailure", "SerializationError", l3("lock_wait_matcher", SAFE)),
    "40P01": ("DeadlockDetected", "DeadlockDetectedError", l3("lock_wait_matcher", SAFE)),
    "55P03": ("LockNotAvailable", "LockNotAvailableError", l3("lock_wait_matcher", SAFE)),
    "53300": ("TooManyConnections", "TooManyConnectionsError",
              l3("pool_exhausted_matcher", SAFE)),
    "57014": ("QueryCanceled", "QueryCanceledError", l3("timeout_matcher", AMBIGUOUS)),
    "57P01": ("AdminShutdown", "AdminShutdownError", l3("sqlstate_matcher", AMBIGUOUS)),
    "57P03": ("CannotConnectNow", "CannotConnectNowError", l3("sqlstate_matcher", SAFE)),
    "08006": ("ConnectionFailure", "ConnectionFailureError", l3("sqlstate_matcher", AMBIGUOUS)),
    "3D000": ("InvalidCatalogName", "InvalidCatalogNameError", l4("sqlstate_matcher")),
    "53100": ("DiskFull", "DiskFullError", l4("sqlstate_matcher", AMBIGUOUS)),
    "25P02": ("InFailedSqlTransaction", "InFailedSQLTransactionError",
              l4("sqlstate_matcher", AMBIGUOUS)),
    "XX000": ("InternalError_", "InternalServerError", l4("sqlstate_matcher", AMBIGUOUS)),
    "P0001": ("RaiseException", "RaiseError", l5("sqlstate_matcher")),
}  # fmt: skip

ASYNCPG = [
    Row("asyncpg: refused", lambda at: by_asyncpg(at.refused_port), "ConnectionRefusedError",
        l3("connection_refused_matcher", SAFE)),
    Row("asyncpg: cut while connecting", lambda at: by_asyncpg(at.listen(greeting_cut)),
        "asyncpg.exceptions.ConnectionDoesNotExistError", l3("sqlstate_matcher", AMBIGUOUS)),
    Row("asyncpg: connect time-out",
        lambda at: by_asyncpg(at.listen(at.until_over), timeout=PATIENCE), "TimeoutError",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("asyncpg: wrong password",
        lambda at: by_asyncpg(at.listen(postgres("28P01", at_login=True, asks_password=True))),
        "asyncpg.exceptions.InvalidPasswordError", l2("sqlstate_matcher")),
    Row("asyncpg: no such database",
        lambda at: by_asyncpg(at.listen(postgres("3D000", at_login=True))),
        "asyncpg.exceptions.InvalidCatalogNameError", l4("sqlstate_matcher")),
]  # fmt: skip

SQLALCHEMY = [
    Row("sqlalchemy: refused", lambda at: by_sqlalchemy(at.refused_port),
        "sqlalchemy.exc.OperationalError", l3("connect_matcher", SAFE)),
    Row("sqlalchemy: there already",
        lambda at: by_sqlalchemy(at.listen(postgres("23505"))),
        "sqlalchemy.exc.IntegrityError", l1("sqlstate_matcher")),
    Row("sqlalchemy: deadlock", lambda at: by_sqlalchemy(at.listen(postgres("40P01"))),
        "sqlalchemy.exc.OperationalError", l3("lock_wait_matcher", SAFE)),
    Row("sqlalchemy: no such table", lambda at: from_sqlite("select * from nowhere"),
        "sqlalchemy.exc.OperationalError", l1("sqlite_code_matcher")),
    Row("sqlalchemy: pool exhausted", from_a_full_pool_of_sqlalchemy,
        "sqlalchemy.exc.TimeoutError", l3("pool_exhausted_matcher", SAFE)),
    Row("sqlalchemy: no such row", one_of_none, "sqlalchemy.exc.NoResultFound",
        l1("database_request_matcher")),
]  # fmt: skip


@each([*PSYCOPG, *ASYNCPG, *SQLALCHEMY])
def test_hc_19_exceptions_of_sql_clients(row: Row, places: Places) -> None:
    row.check(places)


@pytest.mark.parametrize("state", STATES)
def test_hc_19_sqlstates(state: str, places: Places) -> None:
    of_psycopg, of_asyncpg, verdict = STATES[state]
    port = places.listen(postgres(state))
    Row(state, lambda at: by_psycopg(port), f"{ERRORS}{of_psycopg}", verdict).check(places)
    Row(state, lambda at: by_asyncpg(port), f"asyncpg.exceptions.{of_asyncpg}", verdict).check(
        places
    )


# --- MongoDB -------------------------------------------------------------------------------


def client(port: int, host: str = "127.0.0.1", **options: Any) -> Any:
    settings = {
        "directConnection": True, "serverSelectionTimeoutMS": 500, "retryReads": False,
        "retryWrites": False, "socketTimeoutMS": 20_000, **options,
    }  # fmt: skip
    return pymongo.MongoClient(host, port, **settings)


def find(places: Places, answer: Mapping[str, Any], **options: Any) -> None:
    with client(places.listen(mongo(answer)), **options) as store:
        store.trips.cities.find_one({"name": "Oslo"})


def insert(places: Places, answer: Mapping[str, Any], many: bool = False) -> None:
    with client(places.listen(mongo(answer))) as store:
        if many:
            store.trips.cities.insert_many([{"name": "Oslo"}, {"name": "Bergen"}])
        else:
            store.trips.cities.insert_one({"name": "Oslo"})


def find_at(port: int, host: str = "127.0.0.1", **options: Any) -> None:
    with client(port, host, **options) as store:
        store.trips.cities.find_one({})


def find_unknown() -> None:
    with without_names(socket.EAI_NONAME):
        find_at(1, "mongo.invalid")


def failed(code: int, *labels: str) -> Mapping[str, Any]:
    return {"ok": 0, "code": code, "errmsg": "?", "errorLabels": list(labels)}


def write_error(code: int) -> Mapping[str, Any]:
    return {"ok": 1, "n": 0, "writeErrors": [{"index": 0, "code": code, "errmsg": "?"}]}


def concern(code: int) -> Mapping[str, Any]:
    return {"ok": 1, "n": 1, "writeConcernError": {"code": code, "errmsg": "?"}}


def cut_after_greeting(line: socket.socket) -> None:
    line.recv(4096)


def ask_closed(places: Places) -> None:
    store = client(1)
    store.close()
    store.trips.cities.find_one({})


MONGO = "pymongo.errors."
PYMONGO = [
    Row("mongo: there already", lambda at: insert(at, write_error(11000)),
        f"{MONGO}DuplicateKeyError", l1("mongo_code_matcher")),
    Row("mongo: one of several is there already",
        lambda at: insert(at, write_error(11000), many=True), f"{MONGO}BulkWriteError",
        l1("mongo_code_matcher")),
    Row("mongo: document refused", lambda at: insert(at, write_error(121)),
        f"{MONGO}WriteError", l1("mongo_code_matcher")),
    Row("mongo: bad value", lambda at: find(at, failed(2)), f"{MONGO}OperationFailure",
        l1("mongo_code_matcher")),
    Row("mongo: no such command", lambda at: find(at, failed(59)), f"{MONGO}OperationFailure",
        l1("mongo_code_matcher")),
    Row("mongo: no right", lambda at: find(at, failed(13)), f"{MONGO}OperationFailure",
        l2("mongo_code_matcher")),
    Row("mongo: login failed",
        lambda at: find(at, failed(18), username="u", password="p"),
        f"{MONGO}OperationFailure", l2("mongo_code_matcher")),
    Row("mongo: no primary any more", lambda at: insert(at, failed(10107)),
        f"{MONGO}NotPrimaryError", l3("failover_matcher", SAFE)),
    Row("mongo: write conflict",
        lambda at: insert(at, failed(112, "TransientTransactionError")),
        f"{MONGO}OperationFailure", l3("mongo_code_matcher", SAFE)),
    Row("mongo: took too long", lambda at: find(at, failed(50)), f"{MONGO}ExecutionTimeout",
        l3("timeout_matcher", AMBIGUOUS)),
    Row("mongo: replicas too late", lambda at: insert(at, concern(64)),
        f"{MONGO}WriteConcernError", l3("timeout_matcher", AMBIGUOUS)),
    Row("mongo: too many requests", lambda at: find(at, failed(16500)),
        f"{MONGO}OperationFailure", l3("mongo_code_matcher", SAFE)),
    Row("mongo: a code of the future that may pass",
        lambda at: find(at, failed(987654, "RetryableWriteError")),
        f"{MONGO}OperationFailure", l3("mongo_code_matcher", AMBIGUOUS)),
    Row("mongo: refused", lambda at: find_at(at.refused_port),
        f"{MONGO}ServerSelectionTimeoutError", l3("connect_matcher", SAFE)),
    Row("mongo: name unknown", lambda at: find_unknown(),
        f"{MONGO}ServerSelectionTimeoutError", l3("connect_matcher", SAFE)),
    Row("mongo: cut", lambda at: find_at(at.listen(cut_after_greeting)),
        f"{MONGO}ServerSelectionTimeoutError", l3("connect_matcher", SAFE)),
    Row("mongo: not a name", lambda at: client(1)["a b"], f"{MONGO}InvalidName",
        l1("database_request_matcher")),
    Row("mongo: not a document", lambda at: insert_object(at), "bson.errors.InvalidDocument",
        l1("database_request_matcher")),
    Row("mongo: not an id", lambda at: bson.ObjectId("x"), "bson.errors.InvalidId",
        l1("database_request_matcher")),
    Row("mongo: not an address", lambda at: pymongo.MongoClient("mongodb://"),
        f"{MONGO}InvalidURI", l4("client_configuration_matcher")),
    Row("mongo: closed", ask_closed, f"{MONGO}InvalidOperation",
        l4("client_misuse_matcher", AMBIGUOUS)),
]  # fmt: skip


def insert_object(places: Places) -> None:
    with client(places.listen(mongo({"ok": 1}))) as store:
        store.trips.cities.insert_one({"name": object()})


@each(PYMONGO)
def test_hc_19_exceptions_of_pymongo(row: Row, places: Places) -> None:
    row.check(places)
