from __future__ import annotations

from tests.instrumentation.classification.conftest import places  # noqa: F401 - a fixture
