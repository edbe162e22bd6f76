from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Behind the others: there is more than one conftest.
sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Servers that fail in every way; gone after the module."""
    from places import Places

    made = Places(tmp_path_factory.mktemp("places"))
    yield made
    made.close()
