"""Shutting down when the process ends: at exit, and on a SIGTERM that nobody handles."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_MARGIN_SECONDS = 0.5


def install(shutdown: Callable[[], object], timeout: float) -> None:
    """Run ``shutdown`` when the process ends.

    A SIGTERM handler is installed only where the signal still has its default effect, and
    that effect follows afterwards; a handler of the application, earlier or later, stays.

    Args:
        shutdown: Ends within ``timeout`` seconds of itself.
        timeout: Seconds.
    """
    atexit.register(shutdown)
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def on_term(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        # On a thread of its own: the interrupted code may hold a lock that shutdown needs.
        worker = threading.Thread(target=shutdown, name="fuseboard-exit", daemon=True)
        worker.start()
        worker.join(timeout + _MARGIN_SECONDS)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, on_term)
