"""Build notifications in the shape of Alertmanager's webhook, version 4.

Everything in a message comes from the catalogue, the labels and the measured value. Error
messages and arguments of calls never do: a webhook must not carry what a tool was told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from fuseboard_alerts.memory import Message
from fuseboard_alerts.model import GROUP_BY, Ratio, Rule, SlowShare, percentage
from fuseboard_alerts.state import Instance, State

NEVER: Final = "0001-01-01T00:00:00Z"
"""How Alertmanager writes the end of an alert that has not ended."""


@dataclass(frozen=True, slots=True)
class Change:
    """An alert instance entered a state."""

    rule: Rule
    instance: Instance
    state: State
    at: datetime

    @property
    def labels(self) -> dict[str, str]:
        """The labels as receivers see them, sorted by name."""
        pairs = {
            "alertname": self.rule.name,
            "severity": str(self.rule.severity),
            **dict(self.instance.labels),
        }
        return dict(sorted(pairs.items()))


@dataclass(frozen=True, slots=True)
class Wording:
    """What messages say about this installation.

    Attributes:
        external_url: Address of the dashboard; empty if nobody knows it.
        runbook_base: Address of the folder of runbooks.
        time_scale: Factor of windows and holds; said in each message unless it is 1.
    """

    external_url: str = ""
    runbook_base: str = "alerts/runbooks"
    time_scale: float = 1.0


def messages(changes: Iterable[Change], wording: Wording) -> list[Message]:
    """Build one message per alert name and state.

    Args:
        changes: The changes of one evaluation.
        wording: What to say about the installation.
    """
    ordered = sorted(changes, key=lambda one: (one.rule.name, one.state, one.instance.labels))
    groups = groupby(ordered, key=lambda one: (one.rule.name, one.state))
    return [_message(name, state, list(group), wording) for (name, state), group in groups]


def _message(name: str, state: State, changes: list[Change], wording: Wording) -> Message:
    alerts = [_alert(change, wording) for change in changes]
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{name}"}}',
        "truncatedAlerts": 0,
        "status": _status(state),
        "receiver": "fuseboard",
        "groupLabels": {"alertname": name},
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": wording.external_url,
        "alerts": alerts,
    }


def _alert(change: Change, wording: Wording) -> Message:
    mark = fingerprint(change.labels)
    return {
        "status": _status(change.state),
        "labels": change.labels,
        "annotations": _annotations(change, wording),
        # As Prometheus does: the alert starts when it fires, not when its condition began.
        "startsAt": timestamp(change.instance.fired_at or change.instance.active_at),
        "endsAt": timestamp(change.at) if change.state is State.RESOLVED else NEVER,
        "generatorURL": wording.external_url,
        "fingerprint": mark,
        "state": str(change.state),
        "eventId": _event_id(mark, change),
    }


def _status(state: State) -> str:
    # Alertmanager's format has two words. An alert without data is not resolved, so it goes on
    # firing there; "state" and the summary tell the three apart.
    return "resolved" if state is State.RESOLVED else "firing"


def _annotations(change: Change, wording: Wording) -> dict[str, str]:
    rule = change.rule
    is_ratio = isinstance(rule.condition, Ratio | SlowShare)
    value = percentage(change.instance.value) if is_ratio else f"{change.instance.value:g}"
    labels = dict.fromkeys(GROUP_BY, "") | dict(change.instance.labels)
    annotations = {
        "summary": rule.summary,
        "description": rule.description.format_map({**labels, "value": value}),
        "runbook_url": f"{wording.runbook_base.rstrip('/')}/{rule.name}.md",
    }
    if change.state is State.NO_DATA:
        annotations["summary"] = f"No data: {rule.summary}"
        annotations["description"] = (
            "This alert was firing when its data stopped, so nobody knows whether it still is. "
            f"Last seen: {annotations['description']}"
        )
    if wording.time_scale != 1:
        annotations["time_scale"] = f"all windows and hold times × {wording.time_scale:g}"
    return annotations


def _common(maps: list[Mapping[str, str]]) -> dict[str, str]:
    first, *others = maps
    return {
        key: value for key, value in first.items() if all(one.get(key) == value for one in others)
    }


def _event_id(mark: str, change: Change) -> str:
    # From what a restart restores, so that a message sent twice has the same id twice.
    known = (mark, change.state, timestamp(change.instance.active_at))
    identity = "|".join((*known, str(change.instance.notifications)))
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()


def timestamp(time: datetime) -> str:
    """Write a time as RFC 3339 in UTC."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fingerprint(labels: Mapping[str, str]) -> str:
    """Return Alertmanager's fingerprint of a label set: 64-bit FNV-1a in 16 hex digits."""
    value = 0xCBF29CE484222325
    for name, text in sorted(labels.items()):
        for byte in (*name.encode(), 0xFF, *text.encode(), 0xFF):
            value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"{value:016x}"
