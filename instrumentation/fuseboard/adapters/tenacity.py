"""tenacity: the retries of a decorated function inside a tool are attempts of the tool's call.

Around a tool they are not: each try then calls the tool anew, through its guard, and is a call.
"""

from __future__ import annotations

from typing import Final

from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.retries import TENACITY, ignore, listen

PACKAGE: Final = Package("tenacity", extra="", oldest="9.0", below="10")


def instrument_tenacity() -> None:
    """Show the retries that tools make by tenacity as attempts of their calls.

    Raises:
        ConfigurationError: If tenacity is missing or too old.

    Since 0.1.
    """
    require("instrument_tenacity", PACKAGE)
    listen(TENACITY)


def uninstrument_tenacity() -> None:
    """Show them no more.

    Since 0.1.
    """
    ignore(TENACITY)
