"""The headers that go with every export, and which of them may go where.

``OTEL_EXPORTER_OTLP_HEADERS`` as a rule holds the token of the backend that the other ``OTEL_*``
variables name. It must not reach whoever listens at an endpoint that was chosen for fuseboard.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from fuseboard.conventions import ENV_HEADERS
from fuseboard.errors import ConfigurationError

logger = logging.getLogger("fuseboard")

Headers = tuple[tuple[str, str], ...]
_OTEL_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
_OTEL_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
)
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""What HTTP allows as the name of a header (RFC 9110, 5.6.2)."""


def headers_for(endpoint: str, given: Mapping[str, str] | None, *, is_chosen: bool) -> Headers:
    """Return the headers for exports to an endpoint.

    Args:
        endpoint: A legal URL.
        given: The argument of ``init``.
        is_chosen: Whether the endpoint was chosen for fuseboard, not by OpenTelemetry's variables.

    Raises:
        ConfigurationError: A header cannot be sent.
    """
    if given is not None:
        return _checked(given)
    own = _parsed(ENV_HEADERS)
    if own:
        return own
    theirs = _parsed(_OTEL_HEADERS)
    if not is_chosen or _is_theirs(endpoint):
        return theirs
    if theirs:
        logger.info(
            "%s is meant for another server than the endpoint of fuseboard and is not sent there; "
            "what fuseboard's collector needs goes into headers=... or %s",
            _OTEL_HEADERS,
            ENV_HEADERS,
        )
    return ()


def _is_theirs(endpoint: str) -> bool:
    """Tell whether OpenTelemetry's variables name the same server."""
    named = [value for name in _OTEL_ENDPOINTS if (value := os.environ.get(name, "").strip())]
    return _server(endpoint) in map(_server, named)


def _server(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None


def _checked(given: Mapping[str, str]) -> Headers:
    if not isinstance(given, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str) and _is_name(key) and _is_value(value)
        for key, value in given.items()
    ):
        # The values are secrets as a rule, hence not part of the message.
        names = list(given) if isinstance(given, Mapping) else type(given).__name__
        raise ConfigurationError(
            f"fuseboard.init: headers={names!r} is not legal: use a mapping of header names to "
            "ASCII texts without line breaks"
        )
    return tuple(given.items())


def _parsed(variable: str) -> Headers:
    written = [pair for pair in os.environ.get(variable, "").split(",") if pair.strip()]
    split = [pair.partition("=") for pair in written if "=" in pair]
    named = [(key.strip(), unquote(value.strip())) for key, _, value in split]
    headers = tuple((key, value) for key, value in named if _is_name(key))
    if variable == ENV_HEADERS and len(headers) < len(written):
        # What is not a name may be a secret, hence not part of the message.
        raise ConfigurationError(
            f"{variable} is not legal: use name=value pairs, separated by commas, values "
            "percent-encoded, for example authorization=Bearer%20abc"
        )
    wrong = [key for key, value in headers if value and not _is_value(value)]
    if wrong:
        raise ConfigurationError(
            f"{variable} is not legal for {wrong[0]!r}: use ASCII texts without line breaks"
        )
    return headers


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _is_value(text: str) -> bool:
    return bool(text) and text.isprintable() and text.isascii()
