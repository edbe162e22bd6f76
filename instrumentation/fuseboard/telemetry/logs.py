"""The log events that trace sampling cannot lose.

OpenTelemetry's logs API is still private in Python: this module alone imports it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry import _logs
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LogRecordProcessor,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk.resources import Resource

from fuseboard.conventions import SCOPE_NAME

__all__ = ["EventLog", "FinishedLog", "encode_logs"]

FinishedLog = ReadableLogRecord
"""A log event that is ready to be encoded."""

# An empty context is falsy, and the API would then take the current one.
_NOWHERE: Final = Context({"fuseboard": None})


class EventLog:
    """Emits fuseboard's events through a provider of its own, or the application's.

    Args:
        version: Version of fuseboard, for the instrumentation scope.
        resource: Resource of a provider of our own; None uses the application's provider.
        offer: Takes each finished event of our own provider.
    """

    def __init__(
        self,
        version: str,
        resource: Resource | None = None,
        offer: Callable[[FinishedLog], None] | None = None,
    ) -> None:
        if resource is not None and offer is not None:
            own = LoggerProvider(resource, shutdown_on_exit=False)
            own.add_log_record_processor(_Forward(offer))
            provider: _logs.LoggerProvider = own
        else:
            provider = _logs.get_logger_provider()
        self._logger = provider.get_logger(SCOPE_NAME, version)

    def emit(
        self,
        event: str,
        at_unix_ns: int,
        attributes: Mapping[str, str | int | float | bool],
        *,
        context: Context | None = None,
        is_warning: bool = False,
    ) -> None:
        """Emit one event.

        Args:
            event: The event's name.
            at_unix_ns: When it happened, nanoseconds since the epoch.
            attributes: What it says; strings are redacted already.
            context: Carries the span that the event belongs to, if it belongs to one.
            is_warning: Whether somebody should look at it.
        """
        severity = SeverityNumber.WARN if is_warning else SeverityNumber.INFO
        self._logger.emit(
            LogRecord(
                timestamp=at_unix_ns,
                observed_timestamp=at_unix_ns,
                context=context or _NOWHERE,
                severity_number=severity,
                severity_text=severity.name,
                attributes=attributes,
                event_name=event,
            )
        )


class _Forward(LogRecordProcessor):
    """Hands each event to the pipeline; sends nothing itself."""

    def __init__(self, offer: Callable[[FinishedLog], None]) -> None:
        self._offer = offer

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        record = copy.copy(log_record.log_record)
        record.context = _NOWHERE  # it would keep the caller's objects alive
        self._offer(
            ReadableLogRecord(
                log_record=record,
                resource=log_record.resource or Resource.get_empty(),
                instrumentation_scope=log_record.instrumentation_scope,
                limits=log_record.limits,
            )
        )

    def shutdown(self) -> None:
        """Do nothing; the pipeline has a life of its own."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Do nothing; ``fuseboard.flush`` flushes."""
        return True
