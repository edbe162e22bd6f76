"""Our own shim's log events → transitions, heartbeats, and calls whose span was not sampled."""

from __future__ import annotations

from fuseboard import conventions as c
from fuseboard_collector.normalise import own
from fuseboard_collector.normalise.incoming import IncomingLog, IncomingSpan, Source
from fuseboard_collector.normalise.times import instant
from fuseboard_collector.normalise.values import count, json_column, number, seconds, text
from fuseboard_collector.store.rows import Batch, BreakerTransition, Heartbeat


class IncompleteEventError(Exception):
    """An event of ours lacks what makes it one; the message says what."""


def add_event(log: IncomingLog, source: Source, received: int, batch: Batch) -> bool:
    """Add an event of ours to a batch.

    Args:
        log: Any log record.
        source: Who sent it.
        received: When, microseconds since the epoch.
        batch: Where the row goes.

    Returns:
        Whether it was an event of ours.

    Raises:
        IncompleteEventError: If it was, but can't be stored.
    """
    if log.event == c.EVENT_BREAKER_TRANSITION:
        batch.transitions.append(_transition(log, source, received))
    elif log.event == c.EVENT_HEARTBEAT:
        batch.heartbeats.append(_heartbeat(log, source, received))
    elif log.event == c.EVENT_TOOL_CALL:
        batch.calls.append(own.call(_as_span(log), source, received))
    else:
        return False
    return True


def _transition(log: IncomingLog, source: Source, received: int) -> BreakerTransition:
    attributes = log.attributes
    return BreakerTransition(
        time=instant(log.time_ns, received),
        breaker=_required(log, c.BREAKER_NAME),
        tool=_required(log, c.GEN_AI_TOOL_NAME),
        from_state=_required(log, c.BREAKER_FROM),
        to_state=_required(log, c.BREAKER_TO),
        region=own.region(attributes, source),
        upstream=text(attributes.get(c.SERVER_ADDRESS)),
        service=source.text(c.SERVICE_NAME),
        instance=source.text(c.SERVICE_INSTANCE_ID),
        environment=source.text(c.DEPLOYMENT_ENVIRONMENT),
        reason=text(attributes.get(c.BREAKER_REASON), c.MAX_MESSAGE_LENGTH),
        failure_ratio=number(attributes.get(c.BREAKER_FAILURE_RATIO)),
        calls=count(attributes.get(c.BREAKER_CALLS)),
        failures=count(attributes.get(c.BREAKER_FAILURES)),
        error_class=text(attributes.get(c.ERROR_CLASSIFIED_AS)),
        trace_id=log.trace_id or None,
        span_id=log.span_id or None,
        received_at=received,
    )


def _heartbeat(log: IncomingLog, source: Source, received: int) -> Heartbeat:
    attributes = log.attributes
    said = text(attributes.get(c.SERVICE_INSTANCE_ID))
    instance = said or source.text(c.SERVICE_INSTANCE_ID)
    if instance is None:
        raise IncompleteEventError(f"{log.event} without {c.SERVICE_INSTANCE_ID}")
    return Heartbeat(
        time=instant(log.time_ns, received),
        instance=instance,
        service=source.text(c.SERVICE_NAME),
        environment=source.text(c.DEPLOYMENT_ENVIRONMENT),
        region=own.region(attributes, source),
        version=text(attributes.get(c.FUSEBOARD_VERSION)) or source.text(c.FUSEBOARD_VERSION),
        breakers=json_column(attributes.get(c.HEARTBEAT_BREAKERS)),
        calls_in_flight=json_column(attributes.get(c.HEARTBEAT_CALLS_IN_FLIGHT)),
        dropped=json_column(attributes.get(c.HEARTBEAT_DROPPED)),
        overflow=json_column(attributes.get(c.HEARTBEAT_OVERFLOW)),
        received_at=received,
    )


def _as_span(log: IncomingLog) -> IncomingSpan:
    """Return the span that was not sent, so that both ways end in one row."""
    if not log.trace_id or not log.span_id:
        raise IncompleteEventError(f"{log.event} without trace and span id")
    attributes = log.attributes
    duration_ns = round((seconds(attributes.get(c.CALL_DURATION_SECONDS)) or 0.0) * 1e9)
    started = attributes.get(c.CALL_START_UNIX_NANO)
    start_ns = int(started) if isinstance(started, int | str) and str(started).isdecimal() else 0
    start_ns = start_ns or max(log.time_ns - duration_ns, 0)
    return IncomingSpan(
        log.trace_id,
        log.span_id,
        start_ns=start_ns,
        end_ns=start_ns + duration_ns,
        attributes=attributes,
    )


def _required(log: IncomingLog, name: str) -> str:
    found = text(log.attributes.get(name))
    if found is None:
        raise IncompleteEventError(f"{log.event} without {name}")
    return found
