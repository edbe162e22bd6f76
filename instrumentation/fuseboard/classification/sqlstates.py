"""SQLSTATE, the five characters by which SQL databases say what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.classification.network import POOL, TIMEOUT
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    semantic_fault,
    transient_fault,
)
from fuseboard.record import Verdict

LOCKED: Final = transient_fault("lock_wait_matcher", ambiguous=False)

_NAME: Final = "sqlstate_matcher"
_INPUT: Final = input_fault(_NAME)
_ACCESS: Final = access_fault(_NAME)
_BROKEN: Final = persistent_fault(_NAME, ambiguous=True)
_NOT_THERE: Final = persistent_fault(_NAME)
_PASSING: Final = transient_fault(_NAME, ambiguous=False)
_LOST: Final = transient_fault(_NAME, ambiguous=True)
_LENGTH: Final = 5

_CODES: Final[Mapping[str, Verdict]] = {
    "08001": _PASSING,  # could not connect
    "08004": _PASSING,  # connection rejected
    "08P01": _BROKEN,  # protocol violation
    "25006": _ACCESS,  # read-only transaction, or the replica after a failover
    "25P03": _LOST,  # the session was idle in a transaction for too long
    "25P04": TIMEOUT,  # the transaction took too long
    "40001": LOCKED,  # serialization failure
    "40002": _INPUT,  # constraint
    "40003": _LOST,  # completion unknown
    "40P01": LOCKED,  # deadlock
    "42501": _ACCESS,  # privileges
    "53100": _BROKEN,  # disk full
    "53300": POOL,  # too many connections
    "53400": _BROKEN,  # a configured limit
    "55006": LOCKED,  # object in use
    "55P03": LOCKED,  # lock not available
    "57014": TIMEOUT,  # cancelled, as by statement_timeout
    "57P03": _PASSING,  # starting up
    "57P04": _NOT_THERE,  # the database was dropped
    "HV00N": _PASSING,  # a foreign server could not be reached
    "P0001": semantic_fault(_NAME),  # the database's own code refuses
    "P0004": _BROKEN,  # an assertion of it
}
# The first two characters; for codes that are not above.
_CLASSES: Final[Mapping[str, Verdict]] = {
    "08": _LOST,  # connection
    "0A": _INPUT,  # feature not supported
    "20": _INPUT,  # case not found
    "21": _INPUT,  # cardinality
    "22": _INPUT,  # data
    "23": _INPUT,  # integrity constraint
    "24": _BROKEN,  # cursor state
    "25": _BROKEN,  # transaction state
    "26": _BROKEN,  # prepared statement not there
    "28": _ACCESS,  # authorization
    "2D": _BROKEN,  # transaction termination
    "34": _BROKEN,  # cursor name
    "3B": _BROKEN,  # savepoint
    "3D": _NOT_THERE,  # no such database
    "3F": _INPUT,  # no such schema
    "40": _PASSING,  # rolled back
    "42": _INPUT,  # syntax, names, access rules
    "44": _INPUT,  # check option
    "53": _PASSING,  # resources
    "54": _INPUT,  # program limits
    "55": _INPUT,  # not in the state that this needs
    "57": _LOST,  # an operator intervened: shutdown
    "58": _BROKEN,  # the system around the database
    "F0": _BROKEN,  # configuration file
    "HV": _BROKEN,  # foreign data
    "P0": _INPUT,  # PL/pgSQL
    "XX": _BROKEN,  # internal
}


def judge_sqlstate(code: str) -> Verdict | None:
    """Return the verdict on a SQLSTATE, or None if it is none or says nothing.

    Args:
        code: Five characters: ``40001``.
    """
    if len(code) != _LENGTH:
        return None
    return _CODES.get(code) or _CLASSES.get(code[:2])
