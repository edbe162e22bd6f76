"""Random numbers of our own.

An application that calls ``random.seed()`` must not make the ids of its processes equal, nor
their back-off march in step; and what we draw must not disturb the numbers that it draws.
"""

from __future__ import annotations

import random
from typing import Final

from fuseboard.forking import after_fork_in_child

RANDOM: Final = random.Random()  # noqa: S311 - neither ids nor jitter need be secret
after_fork_in_child(RANDOM.seed)
