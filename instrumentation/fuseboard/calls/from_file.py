"""``fuseboard.toml`` in use: which file is read, when, and what is said about it."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fuseboard.calls.switching import SWITCHES
from fuseboard.conventions import CONFIG_FILE, ENV_CONFIG
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child

if TYPE_CHECKING:
    from fuseboard.policy.file import PolicyFile

logger = logging.getLogger("fuseboard")


class _InUse:
    """The file that decides at present."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.renew_lock()

    def renew_lock(self) -> None:
        self.lock = threading.RLock()


_IN_USE: Final = _InUse()
after_fork_in_child(_IN_USE.renew_lock)


def find(config: str | os.PathLike[str] | None) -> Path | None:
    """Return the absolute path of the file to read: the argument, else FUSEBOARD_CONFIG.

    A file in the working directory is not read unasked, since an agent may well run in a folder
    that a stranger filled, and the file may name functions to import.

    Raises:
        ConfigurationError: If the argument is no path.
    """
    if config is None:
        config = os.environ.get(ENV_CONFIG, "").strip() or None
    if config is None:
        _mention_unread()
        return None
    if not isinstance(config, str | os.PathLike) or not os.fspath(config):
        raise ConfigurationError(
            f"fuseboard.init: config={config!r} is not legal: use the path of a TOML file, or None"
        )
    # Absolute, so that a process that changes its folder reads the same file again.
    return Path(config).expanduser().absolute()


def _mention_unread() -> None:
    try:
        is_there = Path(CONFIG_FILE).is_file()
    except OSError:
        return
    if is_there:
        logger.warning(
            "there is a %s in the working directory, which is not read unasked: write "
            "fuseboard.init(config=%r) or set %s if it is yours",
            CONFIG_FILE,
            CONFIG_FILE,
            ENV_CONFIG,
        )


def prepare(path: Path | None) -> PolicyFile | None:
    """Read a file and find out whether the tools that are there can have what it declares.

    Raises:
        ConfigurationError: If not. Nothing has changed, whatever happens.
    """
    if path is None:
        return None
    from fuseboard.policy.file import read_policies  # takes time, and most agents have no file

    # Before any lock is taken, since what it imports may make tools.
    found = read_policies(path)
    SWITCHES.check(found)
    return found


def use(found: PolicyFile | None) -> list[str]:
    """Have a file decide from now on; return the names of the tools that it changes.

    Raises:
        ConfigurationError: If a tool can't have what it declares; nothing has changed then.
    """
    with _IN_USE.lock:
        if found is None and _IN_USE.path is None:
            return []
        replaced = SWITCHES.by_hand() if found is not None else {}
        changed = SWITCHES.use(found)
        _IN_USE.path = found.path if found is not None else None
    if found is not None:
        logger.info(
            "policies were read from %s (%s); changed: %s",
            found.path,
            found.words(),
            ", ".join(changed) or "nothing",
        )
        if replaced:
            logger.warning(
                "what fuseboard.configure gave %s no longer holds", ", ".join(sorted(replaced))
            )
    return changed


def reload() -> list[str]:
    """Read the configuration file again and change the policies of tools that it changed.

    All of it takes effect or, if anything in it is not legal, nothing. Calls that run finish
    under the policy they began with. Breakers keep their state unless their own settings change.
    What :func:`fuseboard.configure` gave tools no longer holds.

    Returns:
        The names of the tools whose policy is another now.

    Raises:
        ConfigurationError: If the file is not legal or can't be read any more, or if ``init``
            was given none.

    Since 0.1.
    """
    path = _IN_USE.path
    if path is None:
        raise ConfigurationError(
            f"fuseboard.reload: there is no file to read; write fuseboard.init(config=...) or set "
            f"{ENV_CONFIG} before it"
        )
    found = prepare(path)
    changed = use(found)
    warn_of_unknown_tools()
    return changed


def warn_of_unknown_tools() -> None:
    """Say which tools a file names that no function has been made into so far."""
    source = SWITCHES.source
    known = SWITCHES.known()
    for name in sorted(set(source.tools) - set(known)) if source is not None else ():
        logger.warning(
            "%s declares a policy for %r, but no such tool has been decorated so far%s",
            source,
            name,
            SWITCHES.advice(name),
        )
