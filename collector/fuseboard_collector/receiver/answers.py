"""What OTLP answers: an export response or a Status, over HTTP in the request's encoding."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.responses import Response

from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.errors import RefusedError, UnauthenticatedError
from fuseboard_collector.receiver.intake import Signal

_EXPORT_RESPONSES: dict[Signal, Any] = {
    Signal.TRACES: ExportTraceServiceResponse,
    Signal.LOGS: ExportLogsServiceResponse,
    Signal.METRICS: ExportMetricsServiceResponse,
}


def accepted(signal: Signal, encoding: Encoding, rejected: int = 0, why: str = "") -> Response:
    """Answer that everything, or all but ``rejected`` records, is stored.

    Args:
        signal: What was sent.
        encoding: How it was sent.
        rejected: Records that will never be accepted.
        why: Reasons, for a person to read.
    """
    if encoding is Encoding.JSON:
        partial = {_json_field(signal): str(rejected), "errorMessage": why}
        return _response(json.dumps({"partialSuccess": partial} if rejected else {}), encoding)
    return _response(export_response(signal, rejected, why), encoding)


def export_response(signal: Signal, rejected: int = 0, why: str = "") -> bytes:
    """Return the protobuf export response of a signal; the arguments are those of accepted()."""
    answer = _EXPORT_RESPONSES[signal]()
    if rejected:
        setattr(answer.partial_success, signal.value, rejected)
        answer.partial_success.error_message = why
    body: bytes = answer.SerializeToString()
    return body


def partial_success(signal: Signal, encoding: Encoding, body: bytes) -> tuple[int, str]:
    """Return how many records an export response calls rejected, and why.

    Args:
        signal: What was sent.
        encoding: How.
        body: The response; an empty or foreign one rejects nothing.
    """
    if encoding is Encoding.JSON:
        try:
            partial = json.loads(body or b"{}").get("partialSuccess") or {}
            return int(partial.get(_json_field(signal), 0)), str(partial.get("errorMessage", ""))
        except (ValueError, AttributeError, TypeError):
            return 0, ""
    answer = _EXPORT_RESPONSES[signal]()
    try:
        answer.ParseFromString(body)
    except DecodeError:
        return 0, ""
    return getattr(answer.partial_success, signal.value), answer.partial_success.error_message


def _json_field(signal: Signal) -> str:
    first, *others = signal.value.split("_")
    return first + "".join(word.title() for word in others)


def refused(error: RefusedError, encoding: Encoding | None) -> Response:
    """Answer with the protocol's Status message.

    Args:
        error: Why.
        encoding: How the request was sent; None if that was the fault: then JSON.
    """
    headers = {"retry-after": str(error.retry_after)} if error.retry_after else {}
    if isinstance(error, UnauthenticatedError):
        headers["www-authenticate"] = 'Bearer realm="fuseboard"'
    if encoding is Encoding.PROTOBUF:
        body: str | bytes = Status(code=error.code, message=str(error)).SerializeToString()
    else:
        encoding = Encoding.JSON
        body = json.dumps({"code": error.code, "message": str(error)})
    return _response(body, encoding, error.status, headers)


def _response(
    body: str | bytes,
    encoding: Encoding,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    return Response(body, status, headers, media_type=encoding.value)
