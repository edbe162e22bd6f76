"""Where mutes are written: into the store of this process, or through a collector's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from fuseboard_alerts.mutes import MOST, Mute, MuteError, draft, ended, find, load, save
from fuseboard_alerts.storage import AlertStore
from fuseboard_collector.errors import StoreError
from fuseboard_collector.remote import RemoteReader

MUTES_PATH: Final = "/api/v1/mutes"
END_PATH: Final = "/api/v1/mutes/end"
FIELDS: Final = ("id", "alert", "severity", "tool", "region", "ends", "reason", "author")
"""What a request to mute has; all but alert, ends and reason may be missing."""


class MuteBook(Protocol):
    """Takes mutes. Both methods return when the row is durable."""

    def add(self, mute: Mute) -> None:
        """Add a mute; an id that is known already, in force or ended, changes nothing.

        Raises:
            MuteError: If there are too many already.
            StoreError: If it can't be stored, or may not be.
        """

    def end(self, mute_id: str, author: str | None = None) -> bool:
        """Unmute; return whether there is such a mute: one that has ended already is as wanted.

        Raises:
            StoreError: If it can't be stored, or may not be.
        """


_writing: Final = threading.Lock()
"""Held from looking to writing: page and API of one process have a book each."""


def _now() -> datetime:
    return datetime.now(UTC)


class StoreMutes:
    """A :class:`MuteBook` over a store that this process may write to."""

    def __init__(self, store: AlertStore, clock: Callable[[], datetime] = _now) -> None:
        self._store = store
        self._clock = clock

    def add(self, mute: Mute) -> None:
        """Add a mute; one that is sent again is written once."""
        with _writing:
            if find(self._store, mute.id) is not None:
                return
            if len(load(self._store, self._clock())) >= MOST:
                raise MuteError(
                    f"{MOST} mutes are in force, and no more may be: unmute some, or mute an alert "
                    "without naming a tool or region"
                )
            save(self._store, mute)

    def end(self, mute_id: str, author: str | None = None) -> bool:
        """Unmute; what is sent again, as over a connection that broke, has the same answer."""
        with _writing:
            found, now = find(self._store, mute_id), self._clock()
            if found is not None and found.ends > now:
                save(self._store, ended(found, now, author))
            return found is not None


class RemoteMutes:
    """A :class:`MuteBook` over HTTP.

    Args:
        url: Base address of the collector.
        token: Its token for sending; None: it needs none of this machine.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 20.0) -> None:
        # Whom it refuses for another reason is told so in its own words.
        denied = (
            f"the collector at {url.rstrip('/')} takes mutes with its token for sending only: give "
            "it with --token or FUSEBOARD_TOKEN"
        )
        self._remote = RemoteReader(url, timeout, token, denied)

    def add(self, mute: Mute) -> None:
        """Add a mute."""
        body = {name: getattr(mute, name) for name in FIELDS}
        self._ask(MUTES_PATH, body | {"ends": mute.ends.isoformat()})

    def end(self, mute_id: str, author: str | None = None) -> bool:
        """Unmute."""
        return bool(self._ask(END_PATH, {"id": mute_id, "author": author}).get("ended"))

    def _ask(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        try:
            with self._remote.operated(path, body) as answer:
                found: dict[str, Any] = json.loads(answer.read())
        except ValueError as error:
            raise StoreError(f"{self._remote.store_id} does not answer like a collector") from error
        return found


def from_request(given: Mapping[str, Any], now: datetime) -> Mute:
    """Return the mute that a request asks for.

    Args:
        given: The fields of :data:`FIELDS`.
        now: The collector's clock decides.

    Raises:
        MuteError: If it makes no sense.
    """
    if unknown := sorted(set(given) - set(FIELDS)):
        raise MuteError(f"a mute has no {unknown[0][:40]!r}; it has {', '.join(FIELDS)}")
    for name in FIELDS:
        if not isinstance(given.get(name, None), str | None):
            raise MuteError(f"{name} must be a text, not {given[name]!r:.60}")
    for name in ("alert", "ends", "reason"):
        if given.get(name) is None:
            raise MuteError(f"a mute needs {name!r}")
    try:
        ends = datetime.fromisoformat(given["ends"])
    except ValueError:
        words = f"{given['ends'][:40]!r} is no moment in time, like 2026-01-05T08:00:00Z"
        raise MuteError(words) from None
    return draft(
        given["alert"], given["reason"], ends, now, severity=given.get("severity"),
        tool=given.get("tool"), region=given.get("region"), author=given.get("author"),
        mute_id=given.get("id"),
    )  # fmt: skip
