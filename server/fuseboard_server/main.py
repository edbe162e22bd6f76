"""The console script ``fuseboard``. It works without the extras, to say which one is missing."""

from __future__ import annotations

import sys

from fuseboard_server import allocator

LONG_RUNNING = ("serve", "dashboard")
"""Commands that answer queries for days."""

MISSING_EXTRA = 5
"""Exit code when a package of the extra that a command needs is not installed."""

USAGE = 2
"""Exit code for wrong usage: no command was given."""

INTERRUPTED = 130
"""Exit code that shells give to what Ctrl-C ended."""


_EXTRAS = {"httpx": "demo", "mcp": "demo", "clickhouse_connect": "clickhouse"}
_EVERYTHING = "The command line, the server and the dashboard"


def explain_missing(module: str) -> str:
    """Say which package is missing and how to install it.

    Args:
        module: The module whose import failed, for example ``click``.
    """
    extra = _EXTRAS.get(module.partition(".")[0], "dashboard")
    what = "Stores in ClickHouse" if extra == "clickhouse" else _EVERYTHING
    return (
        f"fuseboard: the package {module!r} is not installed. {what} are an extra of fuseboard:"
        f"\n\n    pip install 'fuseboard[{extra}]'\n\n"
        "`fuseboard --help` says more.\n"
    )


def _without(module: str, arguments: list[str]) -> int:
    """Say what can be said without a package; return the exit code."""
    from fuseboard_server.without_extras import answer, report

    if arguments[:1] == ["doctor"]:
        sys.stdout.write(report(module.partition(".")[0]))
        return MISSING_EXTRA
    said = answer(arguments) if module == "click" else None
    if said is not None:
        sys.stdout.write(said)
        return 0 if arguments else USAGE
    sys.stderr.write(explain_missing(module))
    return MISSING_EXTRA


def main() -> None:
    """Run the command line; end with exit code 5 if packages that it needs are missing."""
    try:
        if sys.argv[1:2] and sys.argv[1] in LONG_RUNNING:
            allocator.prefer()
        from fuseboard_server.cli import run

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("fuseboard"):
            raise
        sys.exit(_without(error.name or str(error), sys.argv[1:]))
    except KeyboardInterrupt:
        # Ctrl-C before a command has taken the signals over.
        sys.exit(INTERRUPTED)
