"""OTLP/protobuf → incoming records."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fuseboard_collector.normalise.incoming import Logs, Traces
from fuseboard_collector.receiver import messages
from fuseboard_collector.receiver.errors import MalformedError
from fuseboard_collector.receiver.limits import Allowance
from fuseboard_collector.receiver.utf8 import repaired
from fuseboard_collector.receiver.wire import UnusualError, WireReader

_Request = TypeVar("_Request", bound=Message)
_reader = WireReader()


def decode_traces(body: bytes) -> Traces:
    """Decode an ``ExportTraceServiceRequest``; spans with bad ids are counted, not decoded.

    Raises:
        MalformedError: If the body is no such message.
        TooLargeError: If it has too many records.
    """
    try:
        return _reader.traces(body)
    except UnusualError:
        return decode_by_class(body)


def decode_by_class(body: bytes) -> Traces:
    """Decode like :func:`decode_traces`, with the generated classes alone.

    Raises:
        MalformedError: If the body is no such message.
        TooLargeError: If it has too many records.
    """
    traces = Traces()
    allowance = Allowance()
    for group in _parse(ExportTraceServiceRequest(), body).resource_spans:
        allowance.spend()
        for scope in group.scope_spans:
            allowance.spend(len(scope.spans))
            allowance.spend_events(sum(len(span.events) for span in scope.spans))
            source = messages.source(group.resource, scope.scope)
            traces.groups.append((source, messages.spans(scope.spans, traces.rejected)))
    return traces


def decode_logs(body: bytes) -> Logs:
    """Decode an ``ExportLogsServiceRequest``.

    Raises:
        MalformedError: If the body is no such message.
        TooLargeError: If it has too many records.
    """
    logs = Logs()
    allowance = Allowance()
    for group in _parse(ExportLogsServiceRequest(), body).resource_logs:
        allowance.spend()
        for scope in group.scope_logs:
            allowance.spend(len(scope.log_records))
            records = [messages.log(record) for record in scope.log_records]
            logs.groups.append((messages.source(group.resource, scope.scope), records))
    return logs


def count_metrics(body: bytes) -> int:
    """Return how many metrics an ``ExportMetricsServiceRequest`` carries.

    Raises:
        MalformedError: If the body is no such message.
    """
    request = _parse(ExportMetricsServiceRequest(), body)
    return sum(
        len(scope.metrics) for group in request.resource_metrics for scope in group.scope_metrics
    )


def _parse(message: _Request, body: bytes) -> _Request:
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        mended = repaired(body, type(message))
        if mended is None:
            raise MalformedError(
                f"the body is no {message.DESCRIPTOR.name}: {str(error)[:200]}"
            ) from None
        message.ParseFromString(mended)
    return message
