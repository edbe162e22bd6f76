"""Where a ClickHouse database is, as it is written after ``--store``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from fuseboard_collector.errors import StoreError

SCHEMES: Final = ("clickhouse", "clickhouses")
PASSWORD_VARIABLE: Final = "FUSEBOARD_STORE_PASSWORD"  # noqa: S105
DEFAULT_DATABASE: Final = "fuseboard"
_PORTS = {False: 8123, True: 8443}
_SECURE_PORTS = frozenset({443, 8443})
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_EXAMPLE = "clickhouse://user@host:8123/fuseboard"


@dataclass(frozen=True, slots=True)
class Address:
    """A database of a ClickHouse server, over its HTTP interface.

    Attributes:
        password: Never part of a message or of ``repr``.
        secure: Whether to speak TLS.
    """

    host: str
    port: int
    database: str = DEFAULT_DATABASE
    user: str = "default"
    password: str = field(default="", repr=False)
    secure: bool = False

    def __str__(self) -> str:
        """Return the address without its password, fit for messages and logs."""
        scheme = SCHEMES[self.secure]
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{self.user}@{host}:{self.port}/{self.database}"


def is_address(text: str) -> bool:
    """Return whether a text after ``--store`` means a ClickHouse server."""
    return text.partition("://")[0].lower() in SCHEMES and "://" in text


def parse(text: str, password: str | None = None) -> Address:
    """Read an address such as ``clickhouse://user:password@host:8123/database``.

    ``clickhouses://``, ``?secure=true`` and the ports 443 and 8443 mean TLS.

    Args:
        text: The address; percent-encoding in user and password is undone.
        password: The password where the address has none: environment variables are not seen
            by others who list processes.

    Raises:
        StoreError: If it is none; the message does not repeat the text, which may hold a
            password.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise _wrong("it can't be read") from error
    if parts.scheme.lower() not in SCHEMES or not parts.hostname:
        raise _wrong("it names no host")
    if unknown := options.keys() - {"secure"}:
        raise _wrong(f"it has the unknown option {min(unknown)!r}; there is only 'secure'")
    secure = _is_secure(parts.scheme.lower(), options.get("secure"), port)
    given = unquote(parts.password) if parts.password is not None else password
    return Address(
        host=parts.hostname,
        port=port or _PORTS[secure],
        database=_database(parts.path),
        user=unquote(parts.username) if parts.username else "default",
        password=given or "",
        secure=secure,
    )


def _database(path: str) -> str:
    name = unquote(path.strip("/")) or DEFAULT_DATABASE
    if not _IDENTIFIER.match(name):
        raise _wrong("its database may have letters, digits and underscores only")
    return name


def _is_secure(scheme: str, option: str | None, port: int | None) -> bool:
    if option is None:
        return scheme == "clickhouses" or port in _SECURE_PORTS
    if option.lower() not in {"true", "false", "1", "0"}:
        raise _wrong("secure is true or false")
    return option.lower() in {"true", "1"}


def _wrong(reason: str) -> StoreError:
    return StoreError(
        f"the address after --store can't be used: {reason}. Write it like {_EXAMPLE}"
    )
