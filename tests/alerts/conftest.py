"""A store of one's own, filled with calls of known times, and a clock that tests turn."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "grafana"))

from made_calls import Seeded  # noqa: E402
from receivers import Posts, web_receiver  # noqa: E402

from fuseboard_collector.store import open_store  # noqa: E402


@pytest.fixture
def seeded(tmp_path: Path) -> Iterator[Seeded]:
    store = open_store(tmp_path / "fuseboard.duckdb", retention_days=None)
    yield Seeded(store)
    store.close()


@pytest.fixture
def posts() -> Iterator[Posts]:
    with web_receiver() as received:
        yield received


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
