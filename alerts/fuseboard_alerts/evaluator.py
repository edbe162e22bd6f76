"""The embedded evaluator: asks the store, moves the state machines, hands over notifications."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from fuseboard.clock import Clock, SystemClock
from fuseboard.errors import ConfigurationError
from fuseboard_alerts import memory as documents
from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.memory import Key, Memory
from fuseboard_alerts.model import Rule
from fuseboard_alerts.mutes import Mute
from fuseboard_alerts.mutes import load as load_mutes
from fuseboard_alerts.notifiers import Courier, Receiver, ReceiverStatus
from fuseboard_alerts.notifiers.message import Change, Wording, messages
from fuseboard_alerts.state import NOTIFIED, Instance, Observation, State, Timing, advance
from fuseboard_alerts.storage import AlertStore, Entry, append_history, load_memory, save_memory
from fuseboard_alerts.targets.sql import Question, observe, question
from fuseboard_alerts.withholding import sift

logger = logging.getLogger("fuseboard.alerts")

INTERVAL: Final = 15.0
MINIMUM_INTERVAL: Final = 1.0
FORGET_PENDING_AFTER: Final = timedelta(hours=1)
"""After a longer outage a hold time begins anew, as in Prometheus."""


@dataclass(frozen=True, slots=True)
class Status:
    """How the evaluator is doing.

    Attributes:
        ticked_at: The last evaluation.
        evaluation_errors: Failed evaluations since the start, by rule id.
        save_errors: Failed writes of the memory or the history since the start.
        last_error: What went wrong last.
        receivers: How each receiver is doing.
    """

    time_scale: float
    ticked_at: datetime | None
    evaluation_errors: dict[str, int]
    save_errors: int
    last_error: str | None
    receivers: list[ReceiverStatus]


class Evaluator:
    """Evaluates a catalogue on a store, at an interval or tick by tick.

    Alert state, hold times and undelivered notifications are kept in the store and taken up
    again by the next evaluator on it.
    """

    def __init__(
        self,
        store: AlertStore,
        notifiers: Sequence[Receiver] = (),
        *,
        rules: Sequence[Rule] = CATALOGUE,
        time_scale: float = 1.0,
        clock: Clock | None = None,
        interval: float | None = None,
        external_url: str = "",
        runbook_base: str = "alerts/runbooks",
    ) -> None:
        """Take up the state that the store holds; nothing is evaluated or sent yet.

        Args:
            store: Where calls are read and alert state is kept.
            notifiers: Where to send notifications.
            rules: The alerts.
            time_scale: Factor for all windows and hold times, in (0, 10]; 0.1 makes a demo
                ten times as fast.
            clock: Source of time; the machine's by default.
            interval: Seconds between evaluations; 15 × ``time_scale``, at least 1, by default.
            external_url: Address of the dashboard, for notifications.
            runbook_base: Address of the folder of runbooks, for notifications.

        Raises:
            ConfigurationError: If a setting is out of range, or two receivers are the same.
        """
        self._interval = _interval(interval, time_scale)
        self._store = store
        self._rules = {rule.id: rule for rule in rules}
        self._time_scale = time_scale
        self._clock = clock or SystemClock()
        self._wording = Wording(external_url, runbook_base, time_scale)
        self._couriers = [Courier(one, on_settled=self._save) for one in notifiers]
        if len({courier.name for courier in self._couriers}) < len(self._couriers):
            raise ConfigurationError("notifiers: the same receiver is given twice")
        self._lock = threading.RLock()
        self._memory = Memory()
        self._history: list[Entry] = []
        self._mutes: list[Mute] | None = None
        self._is_restored = False
        self._errors: Counter[str] = Counter()
        self._save_errors = 0
        self._last_error: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # --- running -------------------------------------------------------------------------
    def start(self) -> None:
        """Evaluate at the interval in a thread of its own, and deliver notifications."""
        if self._thread is not None:
            return
        for courier in self._couriers:
            courier.start()
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="fuseboard-alerts", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End evaluation and delivery; what is undelivered stays in the store."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
            self._thread = None
        for courier in self._couriers:
            courier.stop(timeout)
        if self._is_restored:
            self._save()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self.tick()
            except Exception:
                logger.exception("alert evaluation failed; the next one is in %g s", self._interval)
            due = max(due + self._interval, time.monotonic())
            self._stop.wait(due - time.monotonic())

    def status(self) -> Status:
        """Return how the evaluator is doing."""
        with self._lock:
            return Status(
                self._time_scale,
                self._memory.ticked_at,
                dict(self._errors),
                self._save_errors,
                self._last_error,
                [courier.status() for courier in self._couriers],
            )

    # --- one evaluation ------------------------------------------------------------------
    def tick(self, now: datetime | None = None) -> list[Change]:
        """Evaluate every rule once.

        Args:
            now: Time of the evaluation, aware; the clock's by default.

        Returns:
            What changed, for tests and logs; notifications are queued already.
        """
        now = now or datetime.fromtimestamp(self._clock.time_ns() / 1e9, UTC)
        if not self._is_restored and not self._restore(now):
            return []
        answers = _Answers(self._store)
        mutes = self._known_mutes(now)
        observed = {rule.id: self._observe(rule, now, answers) for rule in self._rules.values()}
        with self._lock:
            changes = [
                change
                for rule_id, seen in observed.items()
                if seen is not None
                for change in self._advance(self._rules[rule_id], seen, now)
            ]
            self._memory.ticked_at = now
            self._history += [_entry(one) for one in changes]
            self._queue(sift(changes, self._memory, self._rules, mutes, now))
            self._save()
        return changes

    def _known_mutes(self, now: datetime) -> list[Mute] | None:
        """Return the mutes; those known before while they can't be read, None before that."""
        try:
            self._mutes = load_mutes(self._store, now)
        except Exception as error:
            with self._lock:
                self._last_error = f"mutes: {error}"
            logger.warning("mutes could not be read, what was muted before stays so: %s", error)
        return self._mutes

    def _observe(self, rule: Rule, now: datetime, ask: _Answers) -> list[Observation] | None:
        """Return what the store says; None, with the state left alone, if it can't."""
        try:
            return observe(rule, ask(question(rule.condition, now, self._time_scale)))
        except Exception as error:
            with self._lock:
                self._errors[rule.id] += 1
                self._last_error = f"{rule.id}: {error}"
            logger.warning("alert %s could not be evaluated: %s", rule.id, error)
            return None

    def _advance(self, rule: Rule, seen: list[Observation], now: datetime) -> Iterable[Change]:
        timing = Timing(
            timedelta(seconds=rule.hold * self._time_scale),
            timedelta(seconds=rule.keep_firing * self._time_scale),
        )
        by_labels = {one.labels: one for one in seen}
        active = {labels for rule_id, labels in self._memory.instances if rule_id == rule.id}
        for labels in sorted(active | by_labels.keys()):
            key: Key = (rule.id, labels)
            before = self._memory.instances.get(key)
            observation = by_labels.get(labels)
            step = advance(before, observation, now, timing)
            if step.instance is None:
                self._memory.instances.pop(key, None)
            else:
                self._memory.instances[key] = step.instance
            if step.entered is not None:
                last = step.instance or _ended(before, observation)
                yield Change(rule, last, step.entered, now)

    def _queue(self, changes: Sequence[Change]) -> None:
        new = messages((one for one in changes if one.state in NOTIFIED), self._wording)
        for courier in self._couriers:
            courier.offer(new)

    # --- memory --------------------------------------------------------------------------
    def _restore(self, now: datetime) -> bool:
        """Take up the stored state; return False, to try again, while it can't be read."""
        try:
            text = load_memory(self._store)
        except Exception as error:
            with self._lock:
                self._errors["restore"] += 1
                self._last_error = f"restore: {error}"
            logger.warning("the stored alert state could not be read yet: %s", error)
            return False
        with self._lock:
            if text is not None:
                self._take_up(text, now)
            self._is_restored = True
        return True

    def _take_up(self, text: str, now: datetime) -> None:
        try:
            restored = documents.load(text)
        except ValueError as error:
            logger.error("the stored alert state can't be used, starting anew: %s", error)
            self._last_error = f"restore: {error}"
            return
        gap = now - (restored.ticked_at or now)
        # One interval would have passed anyway; holds stand still only for the rest.
        interval = timedelta(seconds=self._interval)
        outage = max(gap - interval, timedelta(0))
        ended_at = (restored.ticked_at or now) + interval
        for key, instance in restored.instances.items():
            is_stale = instance.state is State.PENDING and outage > FORGET_PENDING_AFTER
            if is_stale or key[0] not in self._rules:
                alert, _, severity = key[0].partition("/")
                self._history.append(Entry(alert, severity, instance, State.INACTIVE, ended_at))
            else:
                self._memory.instances[key] = instance.shifted(outage)
        self._memory.held = dict(restored.held)
        for courier in self._couriers:
            courier.offer(restored.outbox.get(courier.name, []))

    def _save(self) -> None:
        """Write history and memory; what can't be written now is written with the next."""
        with self._lock:
            now = datetime.fromtimestamp(self._clock.time_ns() / 1e9, UTC)
            outbox = {courier.name: courier.waiting() for courier in self._couriers}
            document = documents.dump(replace(self._memory, outbox=outbox))
            try:
                if self._history:
                    append_history(self._store, self._history)
                    self._history = []
                save_memory(self._store, document, now)
            except Exception as error:
                self._save_errors += 1
                self._last_error = f"save: {error}"
                logger.warning("alert state not saved, will be tried again: %s", error)


class _Answers:
    """Asks each question once per evaluation: rules share numbers."""

    def __init__(self, store: AlertStore) -> None:
        self._store = store
        self._known: dict[Question, list[dict[str, object]]] = {}

    def __call__(self, asked: Question) -> list[dict[str, object]]:
        if asked not in self._known:
            self._known[asked] = asked.ask(self._store)
        return self._known[asked]


def _entry(change: Change) -> Entry:
    rule = change.rule
    return Entry(rule.name, str(rule.severity), change.instance, change.state, change.at)


def _ended(before: Instance | None, seen: Observation | None) -> Instance:
    """Return the last an instance was, with the value that ended it."""
    if before is None:
        raise AssertionError("an instance at rest can't end")
    return replace(
        before,
        value=seen.value if seen else before.value,
        peak=before.worst,
        notifications=before.notifications + 1,
    )


def _interval(interval: float | None, time_scale: float) -> float:
    if not 0 < time_scale <= 10:
        raise ConfigurationError(f"time_scale={time_scale!r} must be in (0, 10]")
    if interval is None:
        return max(MINIMUM_INTERVAL, INTERVAL * time_scale)
    if not 0 < interval <= 3600:
        raise ConfigurationError(f"interval={interval!r} must be in (0, 3600] seconds")
    return interval
