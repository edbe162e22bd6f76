"""What a receiver of notifications must be able to do."""

from __future__ import annotations

from typing import Protocol

from fuseboard_alerts.memory import Message


class TemporaryDeliveryError(Exception):
    """The receiver could not take the message now; it may later. Says nothing secret."""


class RefusedError(Exception):
    """The receiver will never take this message, for example because it answered 400."""


class Receiver(Protocol):
    """Takes one message at a time.

    Attributes:
        name: Tells receivers apart, stays the same over restarts, and holds no secret.
    """

    name: str

    def send(self, message: Message) -> None:
        """Deliver a message within the receiver's own deadline.

        Raises:
            TemporaryDeliveryError: To be tried again later.
            RefusedError: To be given up.
        """
