"""Worker processes: how each sends what it has before it ends, and how their metrics add up.

:func:`fuseboard.init` does what it can by itself: it shuts down at the end of a process, of a
``multiprocessing`` child and of a Celery worker. What only the host can do is here to be called.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("fuseboard")


def child_exit(server: object, worker: Any) -> None:  # noqa: ARG001 - gunicorn's signature
    """Drop the gauges of a gunicorn worker that ended, however it ended.

    For ``gunicorn.conf.py``: ``from fuseboard.workers import child_exit``.

    Args:
        server: gunicorn's arbiter.
        worker: The worker, whose ``pid`` is known.

    Since 0.1.
    """
    forget_worker(worker.pid)


def forget_worker(pid: int) -> None:
    """Drop the gauges of a worker process that ended: its running calls and open breakers.

    A scrape does so as well, for workers that it finds dead. Counters stay. Does nothing
    without PROMETHEUS_MULTIPROC_DIR.

    Args:
        pid: The process's id.

    Since 0.1.
    """
    from fuseboard.telemetry import shared_gauges

    shared_gauges.forget_worker(pid)


def forget_this_worker() -> None:
    """Drop the gauges of this process, which ends."""
    if shares_metrics():
        forget_worker(os.getpid())


def shares_metrics() -> bool:
    """Tell whether the metrics of worker processes are added up."""
    from fuseboard.telemetry.shared_cells import is_shared

    return is_shared()


def finish_with_the_worker(finish: Callable[[], None]) -> None:
    """Have ``finish`` called at the end of a worker that leaves without ``atexit``.

    Nothing is imported for it: a host that runs this process has been imported.
    """
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, finish, exitpriority=0)
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        signals.worker_process_shutdown.connect(
            lambda **_: finish(), weak=False, dispatch_uid="fuseboard"
        )


def warn_of_unseen_worker() -> None:
    """Say that what this worker counts is not what its parent shows."""
    if not shares_metrics():
        logger.warning(
            "process %d was forked from one that serves /metrics, and what it counts is not shown "
            "there: set PROMETHEUS_MULTIPROC_DIR to an empty folder before Python starts, so that "
            "the metrics of all worker processes add up. Spans are not affected.",
            os.getpid(),
        )
