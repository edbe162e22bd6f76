"""What a login says of one request: who asks, or why that is nobody to be served."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Protocol, TypeAlias

from fuseboard_server.dispatch import Scope

MAX_NAME: Final = 256
"""Characters of a viewer's name; e-mail addresses have at most 254."""
UNAUTHORISED: Final = 401
FORBIDDEN: Final = 403


class Way(Enum):
    """What somebody who was refused may do about it on the spot."""

    NONE = auto()
    LOG_IN = auto()
    LOG_OUT = auto()


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who may see everything.

    Attributes:
        name: As the sidebar shows it: an e-mail address or a user name.
        ends: Unix seconds until which that holds; None: whoever says it says so every time.
    """

    name: str
    ends: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer in place of the page.

    Attributes:
        status: Of HTTP: 401 where nobody is logged in, 403 where somebody is and may not.
        title: Heading.
        text: What is wrong and what to do, for whoever sees it.
        hint: What to change, for whoever runs the server.
        way: The link below.
    """

    status: int
    title: str
    text: str
    hint: str = ""
    way: Way = Way.NONE


Verdict: TypeAlias = Viewer | Refusal


class Door(Protocol):
    """Judges requests."""

    def judge(self, scope: Scope) -> Verdict:
        """Tell who asks; never fail."""


def values_of(scope: Scope, name: bytes) -> list[str]:
    """Return every value of a header, in order.

    Args:
        scope: Of a request or a websocket.
        name: In lower case. ASGI servers do not take ``_`` for ``-``, and neither does this.
    """
    return [value.decode("latin-1") for found, value in scope["headers"] if found == name]
