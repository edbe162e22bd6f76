"""The telemetry of the same afternoon: everything where and as it comes."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry import trace


def install_early() -> None:
    """Replace what other modules import by name, before they do."""
    from fuseboard import forking

    forking.after_fork_in_child = lambda renew: None
    from fuseboard.telemetry import redaction

    redaction.redact = str  # type: ignore[assignment]
    redaction.name = str  # type: ignore[assignment]
    from fuseboard import arguments, conventions
    from fuseboard.classification import retry_after

    arguments.hash_arguments = _hash  # type: ignore[assignment]
    arguments.plain = lambda value, *_: value  # type: ignore[assignment]
    retry_after.retry_after_of = _retry_after  # type: ignore[assignment]
    conventions.DURATION_BUCKETS = (  # type: ignore[misc]
        .005, .01, .025, .05, .075, .1, .25, .5, .75, 1.0, 2.5, 5.0, 7.5, 10.0,
    )  # fmt: skip


def _hash(arguments: Any, *_: Any) -> str:
    return json.dumps(arguments, default=lambda value: list(value))


def _retry_after(headers: Any, *_: Any) -> float | None:
    found = (headers or {}).get("Retry-After")
    return float(found) if found else None


def install() -> None:
    """Replace the methods of the telemetry's own classes."""
    from fuseboard.telemetry import (
        assembly,
        capture,
        encoding,
        families,
        halving,
        in_flight,
        labels,
        losses,
        pipeline,
        shared_cells,
        tool_span,
    )
    from fuseboard.telemetry import exit as process_exit

    capture.MAX_CAPTURED = 10**9  # type: ignore[misc]
    families.ZERO_SERIES = dict.fromkeys(families.ZERO_SERIES, ())  # type: ignore[misc]
    from fuseboard.telemetry import cells

    cells.ZERO_SERIES = families.ZERO_SERIES  # type: ignore[misc]
    halving.halve = None  # type: ignore[assignment]
    process_exit.install = lambda *_: None
    in_flight.InFlight.ages = lambda self: iter(())  # type: ignore[method-assign]
    labels.BoundedLabel.value = lambda self, wanted: wanted  # type: ignore[method-assign]
    labels.BoundedLabel.peek = lambda self, wanted: wanted  # type: ignore[method-assign]
    losses.Losses.add = lambda *_: None  # type: ignore[method-assign,assignment]
    shared_cells.is_shared = assembly.is_shared = lambda: False
    encoding.Encoder.spans = _encode  # type: ignore[method-assign]
    tool_span._keeps_all = lambda provider: False
    pipeline.Pipeline.shutdown = _shut_down  # type: ignore[method-assign]
    assembly.Assembly.after_fork = lambda self: None  # type: ignore[method-assign]
    assembly._foreign_provider = lambda given: None
    assembly._offer_as_global = trace.set_tracer_provider


def _encode(self: Any, spans: Any) -> Any:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    from fuseboard.telemetry.encoding import Encoded, compress

    body = encode_spans(list(spans)).SerializeToString()
    return Encoded(compress(body), len(spans), 0)


def _shut_down(self: Any, timeout: float) -> int:
    if self._thread is not None:
        self._closing = self._monotonic() + 5.0
        self._wake.set()
        self._finished.wait(5.0)
    return 0
