"""Cut an encoded request in two, for a collector that finds it too large."""

from __future__ import annotations

import gzip
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fuseboard.telemetry.encoding import compress
from fuseboard.telemetry.losses import Signal

Halves = tuple[bytes, bytes]

_REQUESTS: Final[dict[Signal, Any]] = {
    Signal.SPANS: ExportTraceServiceRequest,
    Signal.LOGS: ExportLogsServiceRequest,
}
# Where the records are: in groups by resource, and in these by scope.
_LEVELS: Final = {
    Signal.SPANS: ("resource_spans", "scope_spans", "spans"),
    Signal.LOGS: ("resource_logs", "scope_logs", "log_records"),
}


def halve(signal: Signal, body: bytes, first: int) -> Halves:
    """Split a request; nothing but this needs records again once they are encoded.

    Args:
        signal: What it carries.
        body: The gzipped request.
        first: How many records go into the first half.

    Returns:
        Two gzipped requests, records in their order, each under its resource and scope.
    """
    request = _REQUESTS[signal].FromString(gzip.decompress(body))
    rest = _REQUESTS[signal]()
    rest.CopyFrom(request)
    _keep(request, _LEVELS[signal], 0, first)
    _keep(rest, _LEVELS[signal], first, None)
    return compress(request.SerializeToString()), compress(rest.SerializeToString())


def _keep(request: Any, levels: tuple[str, str, str], begin: int, end: int | None) -> None:
    """Drop all records but those from ``begin`` to before ``end``, and groups left empty."""
    groups_name, scopes_name, records_name = levels
    passed = 0
    groups = getattr(request, groups_name)
    for group in tuple(groups):
        scopes = getattr(group, scopes_name)
        for scope in tuple(scopes):
            records = getattr(scope, records_name)
            count = len(records)
            if end is not None:
                del records[max(0, end - passed) :]
            del records[: max(0, begin - passed)]
            passed += count
            if not records:
                scopes.remove(scope)
        if not scopes:
            groups.remove(group)
