"""The signals that ask a command to stop."""

from __future__ import annotations

import signal
import sys


def stop_signals() -> list[signal.Signals]:
    """Return Ctrl-C, SIGTERM and the end of the terminal.

    The last one is left out where it is ignored already: that is how `nohup` asks to go on.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals
