"""The file that says how people log in: the ``[auth]`` table of Streamlit, and who is let in."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from fuseboard_server.login.oidc import CALLBACK, DAY, Oidc
from fuseboard_server.settings import parse_duration
from fuseboard_server.sockets import is_loopback

MIN_COOKIE_SECRET: Final = 32
MAX_FILE: Final = 65536
MAX_SESSION: Final = 30 * DAY
"""Streamlit's cookies last no longer."""
TEXTS: Final = (
    "server_metadata_url", "client_id", "client_secret", "client_secret_file", "cookie_secret",
    "cookie_secret_file", "redirect_uri", "session",
)  # fmt: skip
KEYS: Final = (
    *TEXTS, "allowed_domains", "allowed_emails", "allow_anyone", "trust_unverified_email",
    "client_kwargs",
)  # fmt: skip
WHOM: Final = (
    'allowed_domains = ["example.com"], allowed_emails = ["kim@example.com"], or allow_anyone = '
    "true for everybody whom the provider knows"
)


def read(path: Path) -> Oidc:
    """Read the file.

    Args:
        path: TOML; files that it names are looked for beside it.

    Raises:
        ValueError: If it can't be read or is not enough; never repeats a secret.
    """
    try:
        parsed = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {_place(error)}") from None
    table = parsed.get("auth")
    if not isinstance(table, dict):
        raise ValueError(f"{path} has no table [auth]")
    try:
        return _oidc(table, path.parent)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _oidc(table: Mapping[str, Any], folder: Path) -> Oidc:
    unknown = sorted(set(table) - set(KEYS))
    if unknown:
        raise ValueError(f"unknown in [auth]: {', '.join(unknown)}; known are {', '.join(KEYS)}")
    for key in TEXTS:
        if key in table and not (isinstance(table[key], str) and table[key].strip()):
            raise ValueError(f"{key} has to be a text")
    domains = _addresses(table, "allowed_domains", at_signs=0)
    emails = _addresses(table, "allowed_emails", at_signs=1)
    anyone = _switch(table, "allow_anyone")
    if bool(domains or emails) == anyone:
        raise ValueError(f"say who is let in: {WHOM}")
    return Oidc(
        metadata_url=_metadata_url(_required(table, "server_metadata_url")),
        client_id=_required(table, "client_id"),
        client_secret=_secret(table, "client_secret", folder),
        cookie_secret=_cookie_secret(table, folder),
        domains=domains,
        emails=emails,
        trusts_unverified=_switch(table, "trust_unverified_email"),
        admits_anyone=anyone,
        session_seconds=_session(table),
        client_kwargs=_client_kwargs(table),
        redirect_uri=_redirect_uri(table),
    )


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_FILE)
    except OSError as error:
        raise ValueError(f"can't read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8") from None


def _place(error: tomllib.TOMLDecodeError) -> str:
    """Return where the fault is; the rest of the message may quote what is written there."""
    _, found, place = str(error).rpartition("(at ")
    return f"{found.removeprefix('(')}{place.removesuffix(')')}" if found else "it breaks off"


def _required(table: Mapping[str, Any], key: str) -> str:
    if key not in table:
        raise ValueError(f"{key} is missing")
    return str(table[key])


def _switch(table: Mapping[str, Any], key: str) -> bool:
    found = table.get(key, False)
    if not isinstance(found, bool):
        raise ValueError(f"{key} has to be true or false")
    return found


def _secret(table: Mapping[str, Any], key: str, folder: Path) -> str:
    in_file = f"{key}_file"
    if (key in table) == (in_file in table):
        raise ValueError(f"give either {key} or {in_file}")
    if key in table:
        return str(table[key])
    text = _text(folder / Path(str(table[in_file])).expanduser()).strip()
    if not text:
        raise ValueError(f"{in_file}: the file is empty")
    return text


def _cookie_secret(table: Mapping[str, Any], folder: Path) -> str:
    """Return the secret; without one, a new one: a restart then ends every login."""
    if not {"cookie_secret", "cookie_secret_file"} & set(table):
        return secrets.token_hex(MIN_COOKIE_SECRET)
    secret = _secret(table, "cookie_secret", folder)
    if len(secret) < MIN_COOKIE_SECRET:
        raise ValueError(
            f"cookie_secret has fewer than {MIN_COOKIE_SECRET} characters: whoever guesses it is "
            "logged in as anybody. Make one with `openssl rand -hex 32`"
        )
    return secret


def _session(table: Mapping[str, Any]) -> float:
    seconds = parse_duration(str(table.get("session", "1d")))
    if seconds > MAX_SESSION:
        raise ValueError(f"session is {table['session']!r}; 30d is the most")
    return seconds


def _metadata_url(text: str) -> str:
    """Check the provider's address; it is not repeated, for a password may be in it."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    is_good = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not is_good or not host or "@" in parts.netloc:
        raise ValueError(
            "server_metadata_url has to be like https://id.example/.well-known/openid-configuration"
            ", without a user"
        )
    return text


def _redirect_uri(table: Mapping[str, Any]) -> str:
    text = str(table.get("redirect_uri", ""))
    if text and not text.endswith(CALLBACK):
        raise ValueError(f"redirect_uri is {text!r}; it has to end in {CALLBACK}")
    return text


def _addresses(table: Mapping[str, Any], key: str, at_signs: int) -> frozenset[str]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(f'{key} has to be a list of texts, like ["…"]')
    for one in found:
        if one.count("@") != at_signs or not one.strip("@ ") or one != one.strip() or "*" in one:
            raise ValueError(f"{one!r} can't be in {key}; {WHOM}")
        if not one.isascii():
            raise ValueError(
                f"{one!r} can't be in {key}: only addresses in ASCII are let in; write a domain as "
                "its xn--… form"
            )
    return frozenset(one.lower() for one in found)


def _client_kwargs(table: Mapping[str, Any]) -> dict[str, str]:
    found = table.get("client_kwargs", {})
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError('client_kwargs has to be a table of texts, like { prompt = "login" }')
    return dict(found)
