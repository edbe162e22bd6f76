"""Exceptions of Redis and MongoDB clients: by class, and by the code that the server gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.classification.http_clients import CONNECT_FAILED, LOST
from fuseboard.classification.inspecting import first_argument, names_of, probe
from fuseboard.classification.naming import Named
from fuseboard.classification.network import BUSY, POOL, TIMEOUT
from fuseboard.classification.sqlstates import LOCKED
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    transient_fault,
)
from fuseboard.record import Verdict

_CREDENTIALS: Final = access_fault("credentials_matcher")
_REQUEST: Final = input_fault("database_request_matcher")
_FULL: Final = persistent_fault("storage_full_matcher")
_MISUSED: Final = persistent_fault("client_misuse_matcher", ambiguous=True)
_SET_UP: Final = persistent_fault("client_configuration_matcher")
# It was asked of a node that may not do this now: a failover, or resharding.
_NOT_PRIMARY: Final = transient_fault("failover_matcher", ambiguous=False)

_EXACT: Final = Named(
    {
        "redis.exceptions.AuthenticationError": _CREDENTIALS,
        "redis.exceptions.AuthorizationError": _CREDENTIALS,
        "redis.exceptions.NoPermissionError": _CREDENTIALS,
        "redis.exceptions.AuthenticationWrongNumberOfArgsError": _CREDENTIALS,
        "redis.exceptions.BusyLoadingError": BUSY,
        "redis.exceptions.MaxConnectionsError": POOL,
        "redis.exceptions.ReadOnlyError": _NOT_PRIMARY,
        "redis.exceptions.AskError": _NOT_PRIMARY,
        "redis.exceptions.TryAgainError": _NOT_PRIMARY,
        "redis.exceptions.ClusterError": _NOT_PRIMARY,
        "redis.exceptions.SlotNotCoveredError": _NOT_PRIMARY,
        "redis.exceptions.OutOfMemoryError": _FULL,
        "redis.exceptions.WatchError": LOCKED,
        "redis.exceptions.LockError": LOCKED,
        "redis.exceptions.NoScriptError": _REQUEST,
        "redis.exceptions.ExecAbortError": _REQUEST,
        "redis.exceptions.ClusterCrossSlotError": _REQUEST,
        "redis.exceptions.CrossSlotTransactionError": _REQUEST,
        "redis.exceptions.DataError": _REQUEST,
        "redis.exceptions.ModuleError": _SET_UP,
        "redis.exceptions.PubSubError": _MISUSED,
        "pymongo.errors.WaitQueueTimeoutError": POOL,
        "pymongo.errors.NetworkTimeout": TIMEOUT,
        "pymongo.errors.NotPrimaryError": _NOT_PRIMARY,
        "pymongo.errors.ConfigurationError": _SET_UP,
        "pymongo.errors.InvalidOperation": _MISUSED,
        "pymongo.errors.InvalidName": _REQUEST,
        "pymongo.errors.CollectionInvalid": _REQUEST,
        "bson.errors.BSONError": _REQUEST,
    }
)
_GENERAL: Final = Named(
    {
        "redis.exceptions.TimeoutError": TIMEOUT,
        "redis.exceptions.ConnectionError": LOST,
        "redis.exceptions.InvalidResponse": LOST,
        "pymongo.errors.ServerSelectionTimeoutError": CONNECT_FAILED,
        "pymongo.errors.ConnectionFailure": LOST,
        "pymongo.errors.ProtocolError": LOST,
    }
)

# The first word of Redis' error replies, which its protocol makes the code of the error. Newer
# releases of the client make classes of some.
_REDIS_WORDS: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys(
        ("ERR", "WRONGTYPE", "BUSYGROUP", "NOGROUP", "BUSYKEY", "CROSSSLOT", "EXECABORT"), _REQUEST
    ),
    **dict.fromkeys(("BUSY", "INPROG"), BUSY),
    **dict.fromkeys(
        ("ASK", "MOVED", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "NOGOODSLAVE"),
        _NOT_PRIMARY,
    ),
    "MISCONF": persistent_fault("storage_full_matcher"),
}

_NAME: Final = "mongo_code_matcher"
_MONGO_REQUEST: Final = input_fault(_NAME)
_MONGO_DENIED: Final = access_fault(_NAME)
_MONGO_PASSING: Final = transient_fault(_NAME, ambiguous=False)
_MONGO_LOST: Final = transient_fault(_NAME, ambiguous=True)
_MONGO_BROKEN: Final = persistent_fault(_NAME, ambiguous=True)
_MONGO_CODES: Final[Mapping[int, Verdict]] = {
    **dict.fromkeys(
        # Values, names, types, indexes; documents that are there already or are refused.
        (2, 9, 14, 17, 20, 26, 27, 28, 40, 48, 52, 53, 54, 55, 56, 57, 59, 66, 67, 68, 72, 73, 85,
         86, 115, 121, 166, 10334, 11000, 11001, 12582),
        _MONGO_REQUEST,
    ),
    **dict.fromkeys((13, 18, 33, 391, 8000), _MONGO_DENIED),
    **dict.fromkeys((24, 112, 133, 246, 251, 16500), _MONGO_PASSING),
    **dict.fromkeys((10107, 13435, 13436), _NOT_PRIMARY),
    **dict.fromkeys((50, 64, 89, 262), TIMEOUT),
    **dict.fromkeys((6, 7, 43, 63, 91, 150, 189, 234, 237, 9001, 11600, 11601, 11602, 13388),
                    _MONGO_LOST),
    **dict.fromkeys((1, 39, 14031), _MONGO_BROKEN),
}  # fmt: skip
_MONGO_LABELS: Final = frozenset({"TransientTransactionError", "RetryableWriteError"})


def classify_store(error: BaseException) -> Verdict | None:
    """Judge an exception of a Redis or MongoDB client, or return None."""
    by_name = _EXACT.of(type(error))
    if by_name is not None:
        return by_name
    names = names_of(type(error))
    if "redis.exceptions.ResponseError" in names:
        return _judge_reply(error)
    return _judge_operation(error) if "pymongo.errors.OperationFailure" in names else None


def classify_store_connection(error: BaseException) -> Verdict | None:
    """Judge an exception of such a client that only says that the connection failed."""
    return _GENERAL.of(type(error))


def _judge_reply(error: BaseException) -> Verdict | None:
    code, reply = probe(error, "status_code"), first_argument(error)
    if not isinstance(code, str) and isinstance(reply, str):
        word = reply.partition(" ")[0]
        # Older clients cut "ERR" off, and what follows begins in lower case.
        code = word if word.isupper() else "ERR"
    return _REDIS_WORDS.get(code) if isinstance(code, str) else None


def _judge_operation(error: BaseException) -> Verdict | None:
    known = _MONGO_CODES.get(_code_of(error) or 0)
    labels = probe(error, "_error_labels")
    if known is None and isinstance(labels, set) and not _MONGO_LABELS.isdisjoint(labels):
        return _MONGO_LOST
    return known


def _code_of(error: BaseException) -> int | None:
    details = probe(error, "details")
    code = probe(error, "code")
    if isinstance(details, Mapping):
        # Of a bulk write each part has its own; the first that failed says why.
        parts = details.get("writeErrors")
        first = parts[0] if isinstance(parts, list) and parts else None
        if isinstance(first, Mapping):
            code = first.get("code")
    return code if isinstance(code, int) else None
