"""Which memory allocator a server runs with: jemalloc where it is installed.

Planning a query of the dashboard makes and frees some hundred thousand small objects. With glibc's
malloc they come to lie scattered: within a thousand queries answers get 25 to 40 % slower, and stay
so until the process ends. With jemalloc they don't, and are faster from the start. An allocator can
only be chosen before a program begins, so the program is begun again.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from fuseboard_server.settings import ENV_ALLOCATOR

LIBRARY: Final = "libjemalloc.so.2"
"""Debian's package libjemalloc2; other distributions call the file the same."""

PACKAGE: Final = "libjemalloc2"

_OPTIONS: Final = "narenas:4,dirty_decay_ms:500,muzzy_decay_ms:0,background_thread:true"
"""Gives freed memory back within a second: without them a flood of large requests costs a tenth
more at its peak, and all of it stays. An operator's own ``MALLOC_CONF`` stands in for them."""

_SYSTEM: Final = "system"
_BEGUN_AGAIN: Final = "_FUSEBOARD_BEGUN_AGAIN"
"""Set for the program that is begun again, which takes it away."""
_PRELOAD: Final = "LD_PRELOAD"
_CONF: Final = "MALLOC_CONF"


def prefer() -> None:
    """Replace this process by the same program with jemalloc, if it is there and not in use yet.

    Does nothing elsewhere than on Linux, and where someone chose otherwise: by
    ``FUSEBOARD_ALLOCATOR=system``, or by an ``LD_PRELOAD`` of their own. To be called before
    threads are started and before there is output to lose.
    """
    if os.environ.pop(_BEGUN_AGAIN, None) is not None:
        # Once is enough, also where the preload was taken away on the way (setuid, AppArmor). What
        # this process starts is not asked to follow.
        for name, ours in ((_PRELOAD, LIBRARY), (_CONF, _OPTIONS)):
            if os.environ.get(name) == ours:
                del os.environ[name]
        return
    if os.environ.get(ENV_ALLOCATOR) == _SYSTEM or _PRELOAD in os.environ or not is_installed():
        return
    again = {_CONF: _OPTIONS, **os.environ, _PRELOAD: LIBRARY, _BEGUN_AGAIN: "1"}
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], again)  # noqa: S606
    except OSError:
        return  # not allowed to: it runs without


def is_installed() -> bool:
    """Return whether the linker finds jemalloc on this machine."""
    if sys.platform != "linux":
        return False
    try:
        from ctypes.util import find_library  # not in every Python, and slow to import

        # Loading it to see would fail: it only fits in at a program's start.
        return find_library("jemalloc") == LIBRARY
    except (ImportError, OSError):  # it may want to write a temporary file
        return False
