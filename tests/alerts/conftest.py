"""A store of one's own, filled with calls of known times, and a clock that tests turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made_calls import Seeded

from fuseboard_collector.store import open_store


@pytest.fixture
def seeded(tmp_path: Path) -> Iterator[Seeded]:
    store = open_store(tmp_path / "fuseboard.duckdb", retention_days=None)
    yield Seeded(store)
    store.close()
