"""Print constraints: the installed versions of the project's dependencies and of theirs."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEADER = """\
# The versions that fuseboard is tested with: `pip install -c constraints.txt -e '.[dev]'`.
# Written by `make constraints`. It holds versions only, so pip looks where it always looks.
"""


def collect(name: str, extras: frozenset[str], seen: dict[tuple[str, str], str]) -> None:
    """Walk the installed dependencies of one distribution, extras included.

    Args:
        name: Distribution name in any spelling.
        extras: Extras of it that are wanted.
        seen: Filled with (canonical name, extra) → version.
    """
    key = canonicalize_name(name)
    wanted = [extra for extra in ("", *sorted(extras)) if (key, extra) not in seen]
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    seen.update({(key, extra): found.version for extra in wanted})
    for line in found.requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if any(marker is None or marker.evaluate({"extra": extra}) for extra in wanted):
            collect(requirement.name, frozenset(requirement.extras), seen)


def main() -> None:
    """Print one `name==version` line for each distribution, sorted."""
    seen: dict[tuple[str, str], str] = {}
    collect("fuseboard", frozenset({"dashboard", "demo", "dev"}), seen)
    pins = {name: version for (name, _), version in seen.items() if name != "fuseboard"}
    print(HEADER, end="")
    for name, version in sorted(pins.items()):
        print(f"{name}=={re.sub(r'[+].*', '', version)}")


if __name__ == "__main__":
    main()
