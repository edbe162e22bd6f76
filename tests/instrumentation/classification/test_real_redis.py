"""Exceptions that the Redis client really raises, and all that is said of them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tests.instrumentation.classification.database_talk import redis as refusing
from tests.instrumentation.classification.expected import AMBIGUOUS, SAFE, Row, each, l1, l2, l3, l4
from tests.instrumentation.classification.places import PATIENCE, Places, without_names

redis = pytest.importorskip("redis")


def client(port: int, **options: Any) -> Any:
    settings = {"retry": None, "protocol": 2, "socket_timeout": 20, **options}
    return redis.Redis(port=port, **settings)


def ask(places: Places, reply: str) -> None:
    with client(places.listen(refusing(reply))) as store:
        store.get("x")


def ask_at(port: int, **options: Any) -> None:
    with client(port, **options) as store:
        store.get("x")


def ask_async(port: int) -> None:
    async def get() -> None:
        async with redis.asyncio.Redis(port=port, retry=None, protocol=2) as store:
            await store.get("x")

    asyncio.run(get())


def ask_unknown(code: int) -> None:
    with without_names(code):
        ask_at(1, host="weather.invalid")


def through_a_full_pool(places: Places) -> None:
    port = places.listen(refusing("ERR"))
    pool = redis.ConnectionPool(port=port, max_connections=1, protocol=2, retry=None)
    try:
        pool.get_connection()
        redis.Redis(connection_pool=pool).get("x")
    finally:
        pool.disconnect()


def set_nothing_storable(places: Places) -> None:
    with client(places.listen(refusing("ERR"))) as store:
        store.set("x", object())


def release_a_lock_of_nobody(places: Places) -> None:
    client(1).lock("x").release()


NAME = "redis.exceptions."
ROWS = [
    Row("redis: refused", lambda at: ask_at(at.refused_port), f"{NAME}ConnectionError",
        l3("connection_refused_matcher", SAFE)),
    Row("redis, async: refused", lambda at: ask_async(at.refused_port), f"{NAME}ConnectionError",
        l3("connection_refused_matcher", SAFE)),
    Row("redis: name unknown", lambda at: ask_unknown(socket.EAI_NONAME),
        f"{NAME}ConnectionError", l4("dns_unknown_host_matcher")),
    Row("redis: read time-out",
        lambda at: ask_at(at.listen(at.until_over), socket_timeout=PATIENCE),
        f"{NAME}TimeoutError", l3("timeout_matcher", AMBIGUOUS)),
    Row("redis: cut", lambda at: ask_at(at.listen(lambda line: line.recv(9999))),
        f"{NAME}ConnectionError", l3("connection_matcher", AMBIGUOUS)),
    Row("redis: loading", lambda at: ask(at, "LOADING Redis is loading"),
        f"{NAME}BusyLoadingError", l3("busy_matcher", SAFE)),
    Row("redis: a script runs", lambda at: ask(at, "BUSY Redis is busy"),
        f"{NAME}ResponseError", l3("busy_matcher", SAFE)),
    Row("redis: read-only replica", lambda at: ask(at, "READONLY You can't write"),
        f"{NAME}ReadOnlyError", l3("failover_matcher", SAFE)),
    Row("redis: its master is down", lambda at: ask(at, "MASTERDOWN Link is down"),
        f"{NAME}MasterDownError | {NAME}ResponseError", l3("failover_matcher", SAFE)),
    Row("redis: cluster down", lambda at: ask(at, "CLUSTERDOWN The cluster is down"),
        f"{NAME}ClusterDownError | {NAME}ResponseError", l3("failover_matcher", SAFE)),
    Row("redis: key moved", lambda at: ask(at, "MOVED 3999 127.0.0.1:6381"),
        f"{NAME}MovedError | {NAME}ResponseError", l3("failover_matcher", SAFE)),
    Row("redis: too few replicas", lambda at: ask(at, "NOREPLICAS Not enough"),
        f"{NAME}ResponseError", l3("failover_matcher", SAFE)),
    Row("redis: no login", lambda at: ask(at, "NOAUTH Authentication required."),
        f"{NAME}AuthenticationError", l2("credentials_matcher")),
    Row("redis: wrong password", lambda at: ask(at, "WRONGPASS invalid pair"),
        f"{NAME}AuthenticationError", l2("credentials_matcher")),
    Row("redis: no right", lambda at: ask(at, "NOPERM no permissions"),
        f"{NAME}NoPermissionError", l2("credentials_matcher")),
    Row("redis: out of memory", lambda at: ask(at, "OOM command not allowed"),
        f"{NAME}OutOfMemoryError", l4("storage_full_matcher")),
    Row("redis: cannot save", lambda at: ask(at, "MISCONF Errors writing to disk"),
        f"{NAME}ResponseError", l4("storage_full_matcher")),
    Row("redis: wrong type", lambda at: ask(at, "WRONGTYPE Operation against a key"),
        f"{NAME}ResponseError", l1("database_request_matcher")),
    Row("redis: wrong command", lambda at: ask(at, "ERR unknown command"),
        f"{NAME}ResponseError", l1("database_request_matcher")),
    Row("redis: wrong database", lambda at: ask(at, "ERR DB index is out of range"),
        f"{NAME}ResponseError", l1("database_request_matcher")),
    Row("redis: no such script", lambda at: ask(at, "NOSCRIPT No matching script"),
        f"{NAME}NoScriptError", l1("database_request_matcher")),
    Row("redis: keys of two slots", lambda at: ask(at, "CROSSSLOT Keys in request"),
        f"{NAME}ClusterCrossSlotError | {NAME}ResponseError",
        l1("database_request_matcher")),
    Row("redis: no value", set_nothing_storable, f"{NAME}DataError",
        l1("database_request_matcher")),
    Row("redis: pool exhausted", through_a_full_pool, f"{NAME}MaxConnectionsError",
        l3("pool_exhausted_matcher", SAFE)),
    Row("redis: lock of nobody", release_a_lock_of_nobody, f"{NAME}LockError",
        l3("lock_wait_matcher", SAFE)),
]  # fmt: skip


@each(ROWS)
def test_hc_19_exceptions_of_redis(row: Row, places: Places) -> None:
    row.check(places)
