"""Post notifications to a web address in the shape of Alertmanager's webhook."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from fuseboard.errors import ConfigurationError
from fuseboard_alerts.memory import Message
from fuseboard_alerts.notifiers.receiver import RefusedError, TemporaryDeliveryError

_LATER: Final = frozenset({408, 425, 429})


class Webhook:
    """A receiver that takes HTTP POSTs.

    The address may hold secrets in its user info, path or query (chat services do that), so
    only scheme, host and port ever appear in a name or an error.
    """

    def __init__(self, url: str, *, deadline: float = 10.0) -> None:
        """Check the address; nothing is sent yet.

        Args:
            url: ``http://`` or ``https://``; user info becomes basic authentication.
            deadline: Seconds for connecting, and for each wait for the receiver.

        Raises:
            ConfigurationError: If the address or the deadline can't work.
        """
        parts, port = _split(url)
        if not 0 < deadline <= 300:
            raise ConfigurationError(f"deadline={deadline!r} must be in (0, 300] seconds")
        self._host = parts.hostname or ""
        self._port = port
        self._is_https = parts.scheme == "https"
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": "fuseboard",
            **_authorization(parts.username, parts.password),
        }
        self._deadline = deadline
        mark = hashlib.blake2b(url.encode(), digest_size=4).hexdigest()
        where = f"{parts.scheme}://{self._host}" + (f":{port}" if port else "")
        self.name = f"webhook {where} #{mark}"

    def __repr__(self) -> str:
        """Show no secret."""
        return f"<{self.name}>"

    def send(self, message: Message) -> None:
        """Post a message; a redirect counts as a refusal, since it would drop the body."""
        try:
            status = self._post(json.dumps(message).encode())
        except (OSError, http.client.HTTPException) as error:
            raise TemporaryDeliveryError(f"{self.name}: {type(error).__name__}") from error
        if status >= 500 or status in _LATER:
            raise TemporaryDeliveryError(f"{self.name} answered {status}")
        if status >= 300:
            raise RefusedError(f"{self.name} answered {status}")

    def _post(self, body: bytes) -> int:
        kind = http.client.HTTPSConnection if self._is_https else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._deadline)
        try:
            connection.request("POST", self._target, body, self._headers)
            return connection.getresponse().status
        finally:
            connection.close()


def _split(url: str) -> tuple[SplitResult, int | None]:
    hint = "must be http://host[:port]/path or https://host[:port]/path"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError(f"the webhook's url {hint}; its host or port is wrong") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(f"the webhook's url {hint}, not {parts.scheme or 'nothing'}://")
    if any(ord(character) <= 32 or ord(character) == 127 for character in url):
        raise ConfigurationError(f"the webhook's url {hint}, without spaces or control characters")
    return parts, port


def _authorization(username: str | None, password: str | None) -> dict[str, str]:
    if username is None:
        return {}
    pair = f"{unquote(username)}:{unquote(password or '')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
