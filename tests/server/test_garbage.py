from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fuseboard_server import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_what_was_there_at_the_start_is_not_looked_at_again() -> None:
    frozen = gc.get_freeze_count()
    garbage.calm()
    assert gc.get_freeze_count() > frozen
    assert gc.get_threshold() == garbage.THRESHOLDS


def test_cycles_made_later_are_still_found() -> None:
    garbage.calm()

    class Node:
        other: Node

    first, second = Node(), Node()
    first.other, second.other = second, first
    del first, second
    assert gc.collect() >= 2
