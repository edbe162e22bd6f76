"""Find out whether a framework is installed, in a release that its adapter knows."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from fuseboard.errors import ConfigurationError

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution that an adapter wraps, and which releases of it.

    Attributes:
        name: Its name on PyPI, for example ``langchain-core``.
        extra: The extra of fuseboard that installs it, or an empty text.
        oldest: The oldest release that works, for example ``1.0``.
        below: The first release that nobody has tried, for example ``2``.
    """

    name: str
    extra: str
    oldest: str
    below: str

    @property
    def wanted(self) -> str:
        """What pip has to be told."""
        return f"'fuseboard[{self.extra}]'" if self.extra else f"'{self.name}>={self.oldest}'"


def require(owner: str, package: Package) -> str:
    """Return the installed version of a package that ``owner`` needs.

    A release older than the oldest that works is refused; one that is newer than all that were
    tried gives a warning, because it may well work.

    Args:
        owner: The function that needs it, for messages.
        package: The package.

    Raises:
        ConfigurationError: If it is not installed, or too old.
    """
    try:
        found = version(package.name)
    except PackageNotFoundError:
        raise ConfigurationError(
            f"{owner}() needs the package {package.name!r}, which is not installed: "
            f"pip install {package.wanted}"
        ) from None
    if _numbers(found) < _numbers(package.oldest):
        raise ConfigurationError(
            f"{owner}() needs {package.name} {package.oldest} or newer, and {found} is "
            f"installed: pip install -U {package.wanted}"
        )
    if _numbers(found) >= _numbers(package.below):
        warnings.warn(
            f"{owner}() was tried with {package.name} {package.oldest} up to, not including, "
            f"{package.below}; {found} is installed and may differ",
            stacklevel=3,  # where the application installs the adapter
        )
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """Return a version's leading numbers: enough to order releases, without ``packaging``."""
    numbers = []
    for part in text.split("+", maxsplit=1)[0].split(".")[:3]:
        found = _NUMBER.match(part)
        if found is None:
            break
        numbers.append(int(found.group()))
    return tuple(numbers + [0] * (3 - len(numbers)))
