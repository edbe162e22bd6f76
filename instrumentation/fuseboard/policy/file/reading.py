"""Read a configuration file: its bytes, its tables, and where each of them stands."""

from __future__ import annotations

import os
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.file.places import Path as Keys
from fuseboard.policy.file.places import line_of, lines_of

MAX_BYTES: Final = 1_000_000


@dataclass(frozen=True)
class Document:
    """A file that is valid TOML.

    Attributes:
        path: Where it is, absolute.
        tables: What it says.
        may_name_functions: Whether it may name functions.
        imports: Whether those are imported.
    """

    path: Path
    tables: dict[str, Any]
    may_name_functions: bool = True
    imports: bool = True
    _lines: dict[Keys, int] = field(default_factory=dict, repr=False)

    def wrong(self, keys: Keys, problem: str) -> ConfigurationError:
        """Return the error for a key or a table.

        Args:
            keys: The names of the tables down to it, and its own.
            problem: What is wrong, and what to do.
        """
        line = line_of(self._lines, keys)
        where = f"{self.path}, line {line}" if line is not None else str(self.path)
        return ConfigurationError(f"{where}: {problem}")


def read(path: Path, *, imports: bool = True) -> Document:
    """Read a file.

    Raises:
        ConfigurationError: If it can't be read or is no TOML.
    """
    raw, mode = _bytes_of(path)
    try:
        text = raw.decode("utf-8-sig")
        tables = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: must be UTF-8 ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from None
    # Who may write the file could have any code run in here.
    is_safe = os.name != "posix" or not mode & stat.S_IWOTH
    return Document(path, tables, is_safe, imports, lines_of(text))


def _bytes_of(path: Path) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the configuration file {str(path)!r}: {error.strerror or error}"
        ) from error
    if len(raw) > MAX_BYTES:
        raise ConfigurationError(f"{path}: is larger than {MAX_BYTES} bytes")
    return raw, mode
