"""How much memory the engine may have where nobody says so."""

from __future__ import annotations

import os
from pathlib import Path

MIB = 1024 * 1024
SHARE = 4
"""The engine gets a quarter: agents, the dashboard and the disk's cache want the rest."""
LEAST = 256 * MIB
"""Pages of 100 million calls were answered with this much."""
MOST = 4096 * MIB

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def default_limit() -> str:
    """Return a quarter of the memory of machine or container, as DuckDB writes sizes."""
    return words(max(LEAST, min(MOST, available() // SHARE)))


def words(amount: int) -> str:
    """Return bytes as DuckDB reads sizes: whole mebibytes."""
    return f"{amount // MIB}MiB"


def available(cgroups: tuple[Path, ...] = _CGROUP_LIMITS) -> int:
    """Return the bytes of memory that this process can have at all.

    Args:
        cgroups: Files in which Linux says what a container may have.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [limit for limit in map(_limit, cgroups) if limit is not None]
    return min([machine, *limits])


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    # "max", or a number beyond any machine, where there is none.
    return int(text) if text.isascii() and text.isdigit() else None
