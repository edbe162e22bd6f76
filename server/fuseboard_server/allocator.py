"""Which memory allocator a server runs with: jemalloc where it is installed.

Planning a query of the dashboard makes and frees some hundred thousand small objects. With glibc's
malloc they come to lie scattered: within a thousand queries answers get 25 to 40 % slower, and stay
so until the process ends. With jemalloc they don't, and are faster from the start. An allocator can
only be chosen before a program begins, so the program is begun again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from fuseboard_server.settings import ENV_ALLOCATOR

LIBRARY: Final = "libjemalloc.so.2"
"""Debian's package libjemalloc2; other distributions call the file the same."""

PACKAGE: Final = "libjemalloc2"

_OPTIONS: Final = "narenas:4,dirty_decay_ms:500,muzzy_decay_ms:0,background_thread:true"
"""Gives freed memory back within a second: without them a flood of large requests costs a tenth
more at its peak, and all of it stays. An operator's own ``MALLOC_CONF`` stands in for them."""

SYSTEM: Final = "system"
"""The one value of ``FUSEBOARD_ALLOCATOR``."""
_ALLOCATORS: Final = ("libjemalloc", "libtcmalloc", "libmimalloc")
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
    wanted = os.environ.get(ENV_ALLOCATOR)
    if wanted not in (None, "", SYSTEM):
        print(  # noqa: T201
            f"fuseboard: {ENV_ALLOCATOR}={wanted!r} means nothing and is ignored; the one value "
            f"is {SYSTEM!r}",
            file=sys.stderr,
        )
    if wanted == SYSTEM or _PRELOAD in os.environ or not is_installed():
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
        if find_library("jemalloc") == LIBRARY:
            return True
    except (ImportError, OSError):  # it may want to write a temporary file
        pass
    # It asks ldconfig, which small images lack, and which is in no ordinary user's PATH.
    return any((folder / LIBRARY).exists() for folder in _folders())


def _folders() -> list[Path]:
    """Return where the dynamic linker looks by itself, on Debian, Fedora and Alpine alike."""
    triplets = (getattr(sys.implementation, "_multiarch", ""), "")
    roots = ("/usr/lib", "/lib", "/usr/lib64", "/lib64")
    return [Path(root, triplet) for root in roots for triplet in triplets]


def loaded_by(pid: int) -> str | None:
    """Return the allocator that a process runs with: its library's name, or the C library's.

    Args:
        pid: The process.

    Returns:
        ``libjemalloc.so.2``, another preloaded allocator's file, ``system``; None if it can't be
        told, as of a process of somebody else.
    """
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    names = {line.rsplit("/", 1)[-1] for line in maps.splitlines() if ".so" in line}
    found = sorted(name for name in names if name.startswith(_ALLOCATORS))
    return found[0] if found else SYSTEM
