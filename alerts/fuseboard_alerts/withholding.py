"""What is kept from receivers while alerts are muted, and what they are told afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from fuseboard_alerts.memory import Held, Key, Memory
from fuseboard_alerts.model import Rule
from fuseboard_alerts.mutes import Mute, muted_by
from fuseboard_alerts.notifiers.message import Change
from fuseboard_alerts.state import NOTIFIED, Instance, State

_LASTING = frozenset({State.FIRING, State.NO_DATA})


def sift(
    changes: Iterable[Change],
    memory: Memory,
    rules: Mapping[str, Rule],
    mutes: Sequence[Mute] | None,
    now: datetime,
) -> list[Change]:
    """Return the changes to tell receivers of, those of ended mutes included.

    When a mute has ended, what still fires is told (again), and what was resolved meanwhile is told
    if receivers believe that it fires. What began and ended under the mute is never told.

    Args:
        changes: Of this evaluation.
        memory: What is held back is kept in it.
        rules: By id.
        mutes: Those that have not ended; None while they are not known yet: what was held back goes
            on being so, and of all else receivers are told.
        now: Time of the evaluation.
    """

    def is_muted(key: Key) -> bool:
        return key in memory.held if mutes is None else _matches(mutes, rules[key[0]], key, now)

    told = []
    for change in changes:
        if change.state not in NOTIFIED:
            continue
        key = (change.rule.id, change.instance.labels)
        if is_muted(key):
            memory.held[key] = _held(memory.held.get(key), change)
        elif _is_news(memory.held.pop(key, None), change):
            told.append(change)
    for key, instance in memory.instances.items():
        if instance.state in _LASTING and key not in memory.held and is_muted(key):
            memory.held[key] = Held(is_told=True)
    over = [key for key in memory.held if key[0] not in rules or not is_muted(key)]
    for key in over:
        held = memory.held.pop(key)
        if key[0] in rules:
            told += _caught_up(rules[key[0]], key, held, memory, now)
    return told


def _matches(mutes: Sequence[Mute], rule: Rule, key: Key, now: datetime) -> bool:
    return muted_by(mutes, now, rule.name, str(rule.severity), dict(key[1])) is not None


def _held(before: Held | None, change: Change) -> Held:
    """Return what is held back of an instance whose change nobody is told of."""
    # An instance counts the states that it entered: with more than one, receivers know it.
    knew = change.instance.notifications > 1 if before is None else before.is_told
    if change.state is State.RESOLVED:
        return Held(knew, change.instance, change.at)
    return Held(knew)


def _is_news(held: Held | None, change: Change) -> bool:
    """Tell whether receivers understand a change: no resolution of what they never heard of."""
    return held is None or held.is_told or change.state is not State.RESOLVED


def _caught_up(rule: Rule, key: Key, held: Held, memory: Memory, now: datetime) -> Iterable[Change]:
    instance = memory.instances.get(key)
    if instance is not None and instance.state in _LASTING:
        again = _counted(instance)
        memory.instances[key] = again
        yield Change(rule, again, again.state, now)
    elif held.ended is not None and held.is_told:
        yield Change(rule, held.ended, State.RESOLVED, held.ended_at or now)


def _counted(instance: Instance) -> Instance:
    """Return an instance with one more notification: receivers know repeats by their number."""
    return replace(instance, notifications=instance.notifications + 1)
