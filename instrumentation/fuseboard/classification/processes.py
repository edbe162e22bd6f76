"""Programs that a tool starts: how they end, and that they cannot be started."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Final

from fuseboard.classification.inspecting import is_a, names_of, probe, traceback_of
from fuseboard.classification.network import TIMEOUT
from fuseboard.classification.verdicts import (
    access_fault,
    input_fault,
    persistent_fault,
    semantic_fault,
    transient_fault,
)
from fuseboard.record import Verdict

_NAME: Final = "exit_status_matcher"
# The program ran and says that it failed, and no more: what "ok": false is in an answer.
_FAILED: Final = semantic_fault(_NAME)
_INPUT: Final = input_fault(_NAME)
_BROKEN: Final = persistent_fault(_NAME, ambiguous=True)
_NO_PROGRAM: Final = persistent_fault("program_not_found_matcher")
_PASSING: Final = transient_fault(_NAME, ambiguous=True)
_KILLED: Final = transient_fault("killed_by_signal_matcher", ambiguous=True)
_CRASHED: Final = persistent_fault("killed_by_signal_matcher", ambiguous=True)

# What shells and timeout(1) say, and sysexits.h.
_STATUSES: Final[Mapping[int, Verdict]] = {
    64: _INPUT,  # usage
    65: _INPUT,  # data
    66: _INPUT,  # no input
    67: _INPUT,  # no such user
    68: _INPUT,  # no such host
    69: _PASSING,  # unavailable
    70: _BROKEN,  # software
    71: _PASSING,  # the system: cannot fork
    72: _BROKEN,  # a file of the system
    73: _BROKEN,  # cannot create
    74: _BROKEN,  # input or output
    75: _PASSING,  # try again
    76: _BROKEN,  # protocol
    77: access_fault(_NAME),  # permission
    78: _BROKEN,  # configuration
    124: TIMEOUT,
    126: _NO_PROGRAM,
    127: _NO_PROGRAM,
}
_DEFECTS: Final = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)


def classify_process(error: BaseException) -> Verdict | None:
    """Judge how a program ended or why it could not be started, or return None."""
    if is_a(error, FileNotFoundError):
        return _NO_PROGRAM if _raised_by_popen(error) else None
    names = names_of(type(error))
    if "subprocess.TimeoutExpired" in names:
        return TIMEOUT
    if "subprocess.CalledProcessError" not in names:
        return None
    status = probe(error, "returncode")
    return _judge_status(status) if isinstance(status, int) else _FAILED


def _judge_status(status: int) -> Verdict:
    # A shell adds 128 to the number of the signal that ended its command.
    number = -status if status < 0 else status - 128
    if 0 < number < signal.NSIG:
        return _CRASHED if number in _DEFECTS else _KILLED
    return _STATUSES.get(status, _FAILED)


def _raised_by_popen(error: BaseException) -> bool:
    """Tell a program that is not there from a file that is not there: by who raised it."""
    trace = traceback_of(error)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    frame = trace.tb_frame
    is_popen = frame.f_globals.get("__name__") == "subprocess"
    return is_popen and frame.f_code.co_name == "_execute_child"
