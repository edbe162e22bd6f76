"""What the tests of real exceptions share: servers that fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.instrumentation.classification.places import Places


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """Servers that fail in every way; gone after the module."""
    made = Places(tmp_path_factory.mktemp("places"))
    yield made
    made.close()
