"""How alerts reach people: messages, receivers, and delivery apart from evaluation."""

from fuseboard_alerts.notifiers.delivery import Courier, ReceiverStatus
from fuseboard_alerts.notifiers.receiver import (
    Receiver,
    RefusedError,
    TemporaryDeliveryError,
)
from fuseboard_alerts.notifiers.webhook import Webhook

__all__ = [
    "Courier",
    "Receiver",
    "ReceiverStatus",
    "RefusedError",
    "TemporaryDeliveryError",
    "Webhook",
]
