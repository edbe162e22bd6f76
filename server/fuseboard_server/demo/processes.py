"""Child processes that never outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from fuseboard_server.settings import SERVER_VARIABLES

PR_SET_PDEATHSIG = 1
"""Linux: the signal that the kernel sends to a process when its parent dies."""

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent: int, orphaned: signal.Signals = signal.SIGTERM) -> None:
    """Ask the kernel for a signal when the parent dies, even of SIGKILL. Linux only.

    Args:
        parent: Process id of the parent, to notice one that died before the request.
        orphaned: The signal.
    """
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, orphaned)
    if os.getppid() != parent:
        os.kill(os.getpid(), orphaned)


def start(
    command: Sequence[str],
    stdout: IO[bytes] | int | None = None,
    orphaned: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, bound to the life of this process.

    A session of its own keeps the terminal's Ctrl-C from it: the parent stops its children in
    order instead. What the environment says of a real server (its store, its tokens) is not for
    the demo's.

    Args:
        command: Program and arguments.
        stdout: As for ``subprocess.Popen``.
        orphaned: What ends it if this process is killed.
    """
    parent = os.getpid()
    return subprocess.Popen(  # noqa: S603
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES},
        preexec_fn=lambda: die_with_parent(parent, orphaned),  # noqa: PLW1509 (no threads run yet)
    )


def stop(process: subprocess.Popen[bytes], patience: float = 10.0) -> int:
    """Stop a process and its group: SIGTERM, then after ``patience`` seconds SIGKILL.

    Returns:
        Its exit code, negative if a signal ended it.
    """
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    # The leader may be gone while children of its own linger in its group.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
