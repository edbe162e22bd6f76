"""stamina: the retries of a decorated function inside a tool are attempts of the tool's call.

Around a tool they are not: each try then calls the tool anew, through its guard, and is a call.
"""

from __future__ import annotations

from typing import Final

from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.retries import STAMINA, ignore, listen

PACKAGE: Final = Package("stamina", extra="", oldest="25.1", below="27")


def instrument_stamina() -> None:
    """Show the retries that tools make by stamina as attempts of their calls.

    Raises:
        ConfigurationError: If stamina is missing or too old.

    Since 0.1.
    """
    require("instrument_stamina", PACKAGE)
    listen(STAMINA)


def uninstrument_stamina() -> None:
    """Show them no more.

    Since 0.1.
    """
    ignore(STAMINA)
