"""The evaluator's memory as a JSON document, so that a restart forgets nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fuseboard_alerts.state import Instance, Labels, State

VERSION: Final = 1

Key = tuple[str, Labels]
"""Rule id and label set."""

Message = dict[str, Any]
"""A notification in the shape in which it is delivered; JSON all through."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is kept from receivers of an instance that is muted.

    Attributes:
        is_told: Whether they were told before that it fires.
        ended: The instance as it was when it was resolved, if it was.
        ended_at: When.
    """

    is_told: bool
    ended: Instance | None = None
    ended_at: datetime | None = None


@dataclass(slots=True)
class Memory:
    """Everything that must survive a restart.

    Attributes:
        ticked_at: The last evaluation.
        instances: The active alerts.
        outbox: Undelivered messages per receiver, oldest first.
        held: What is kept from receivers of alerts that are muted.
    """

    ticked_at: datetime | None = None
    instances: dict[Key, Instance] = field(default_factory=dict)
    outbox: Mapping[str, list[Message]] = field(default_factory=dict)
    held: dict[Key, Held] = field(default_factory=dict)


def dump(memory: Memory) -> str:
    """Write a memory as JSON text."""
    return json.dumps(
        {
            "version": VERSION,
            "ticked_at": _text(memory.ticked_at),
            "instances": [
                {"rule": rule, **_instance(one)} for (rule, _), one in memory.instances.items()
            ],
            "outbox": memory.outbox,
            "held": [_held(key, one) for key, one in memory.held.items()],
        }
    )


def load(text: str) -> Memory:
    """Read a memory back.

    Raises:
        ValueError: If the text is no memory of this version.
    """
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ValueError(f"not an alert memory of version {VERSION}")
    try:
        instances = [(str(item["rule"]), _restored(item)) for item in document["instances"]]
        return Memory(
            ticked_at=_time(document["ticked_at"]),
            instances={(rule, one.labels): one for rule, one in instances},
            outbox={str(name): list(messages) for name, messages in document["outbox"].items()},
            held=dict(map(_restored_held, document.get("held", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"damaged alert memory: {error!r}") from error


def _held(key: Key, held: Held) -> dict[str, object]:
    return {
        "rule": key[0],
        "labels": dict(key[1]),
        "is_told": held.is_told,
        "ended": _instance(held.ended) if held.ended else None,
        "ended_at": _text(held.ended_at),
    }


def _restored_held(item: Mapping[str, Any]) -> tuple[Key, Held]:
    labels = tuple((str(name), str(value)) for name, value in item["labels"].items())
    ended = _restored(item["ended"]) if item["ended"] else None
    return (str(item["rule"]), labels), Held(bool(item["is_told"]), ended, _time(item["ended_at"]))


def _instance(instance: Instance) -> dict[str, object]:
    return {
        "labels": dict(instance.labels),
        "state": instance.state,
        "active_at": _text(instance.active_at),
        "last_true": _text(instance.last_true),
        "fired_at": _text(instance.fired_at),
        "keep_since": _text(instance.keep_since),
        "value": instance.value,
        "peak": instance.peak,
        "notifications": instance.notifications,
    }


def _restored(item: Mapping[str, Any]) -> Instance:
    return Instance(
        labels=tuple((str(name), str(value)) for name, value in item["labels"].items()),
        state=State(item["state"]),
        active_at=datetime.fromisoformat(item["active_at"]),
        last_true=datetime.fromisoformat(item["last_true"]),
        fired_at=_time(item["fired_at"]),
        keep_since=_time(item["keep_since"]),
        value=float(item["value"]),
        notifications=int(item["notifications"]),
        # Documents of before have none.
        peak=float(item["value"] if item.get("peak") is None else item["peak"]),
    )


def _text(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
