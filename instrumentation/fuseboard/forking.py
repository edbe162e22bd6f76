"""Locks and ids of a forked child, which has none of its parent's threads."""

from __future__ import annotations

import os
from collections.abc import Callable


def after_fork_in_child(renew: Callable[[], object]) -> None:
    """Run ``renew`` in every child that is forked from now on; nothing where there is no fork.

    A lock that another thread of the parent held at the fork stays locked in the child for ever,
    hence every lock of a module is made anew.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
