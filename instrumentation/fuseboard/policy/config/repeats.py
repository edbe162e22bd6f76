"""When a call is one too many of its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fuseboard.policy.config.checks import check_choice, check_int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Notice an agent that calls a tool with the same arguments again and again.

    Calls count as the same if tool and arguments' hash are equal; arguments that a tool ignores
    (``ignore_arguments``) make no difference, and tools without a hash are left out.

    Attributes:
        limit: Calls with the same arguments that a session may make.
        action: What happens to further ones: ``warn`` logs one warning for each such tool and
            arguments, ``reject`` logs it too and raises ``RepeatedCallError``.

    Since 0.1.
    """

    limit: int = 10
    action: Literal["warn", "reject"] = "warn"

    def __post_init__(self) -> None:
        check_int("Repeats", "limit", self.limit, 1, 1_000_000)
        check_choice("Repeats", "action", self.action, ("warn", "reject"))
