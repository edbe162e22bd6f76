"""The tests of the listeners to tenacity, stamina and pybreaker, in other releases of these."""

from __future__ import annotations

from tests.instrumentation.adapters.test_pybreaker import *  # noqa: F403
from tests.instrumentation.adapters.test_retries_of_libraries import *  # noqa: F403
