"""What the console script can say when only fuseboard's own dependencies are installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from fuseboard_server.commands import COMMANDS

INSTALL = """\
To install what is missing:

    pip install 'fuseboard[dashboard]'    the command line, the server and the dashboard
    pip install 'fuseboard[demo]'         these and the demo
    pip install 'fuseboard[clickhouse]'   these, and storing in a ClickHouse database
    pip install 'fuseboard[oidc]'         these, and logging in through OpenID Connect

(From a clone of the repository: pip install '.[dashboard]'.)
"""

BASE = """\
Installed here is what an agent needs: `import fuseboard` with its policies, metrics and export
of telemetry. The commands need an extra that is not installed.
"""


def answer(arguments: Sequence[str]) -> str | None:
    """Return what to print for a command line that needs no extra; None for any other.

    Args:
        arguments: The command line without the program's name.
    """
    first = arguments[0] if arguments else "--help"
    if first in {"-V", "--version"}:
        return f"{_version()}\n\n{BASE}\n{INSTALL}"
    if first in {"-h", "--help"}:
        return _help()
    return None


def report(module: str) -> str:
    """Return what `doctor` finds without its extra.

    Args:
        module: The package that it misses first.
    """
    missing = f"{module} is missing; the extra `dashboard` is not installed, or not all of it"
    return f"ok    version: {_version()}\nfail  packages: {missing}\n\n{INSTALL}"


def _version() -> str:
    return f"fuseboard, version {version('fuseboard')}"


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items())
    return (
        "Usage: fuseboard [OPTIONS] COMMAND [ARGS]...\n\n"
        "  The fuse board for AI agents' tool calls.\n\n"
        f"{BASE}\n{INSTALL}\n"
        "Options:\n  -V, --version  Show the version.\n  -h, --help     Show this message.\n\n"
        f"Commands, each of which needs an extra:\n{commands}\n"
    )
