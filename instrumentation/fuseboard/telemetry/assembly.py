"""Builds everything that ``init`` switches on, and takes it down again."""

from __future__ import annotations

import logging
import os
import threading
import uuid
import weakref
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import prometheus_client
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Tracer as SdkTracer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry

from fuseboard import conventions as c
from fuseboard.runtime import Runtime
from fuseboard.telemetry.attributes import ToolParts
from fuseboard.telemetry.call_log import CallLog
from fuseboard.telemetry.capture import Capture
from fuseboard.telemetry.duplicates import DuplicateMarker
from fuseboard.telemetry.encoding import Encoder, clean_resource
from fuseboard.telemetry.logs import EventLog
from fuseboard.telemetry.losses import Losses, Signal
from fuseboard.telemetry.metrics import Metrics
from fuseboard.telemetry.pipeline import Limits, Pipeline
from fuseboard.telemetry.processor import PipelineProcessor
from fuseboard.telemetry.redaction import name, redact
from fuseboard.telemetry.sending import HttpSender
from fuseboard.telemetry.settings import Settings
from fuseboard.telemetry.shared_cells import is_shared
from fuseboard.telemetry.shared_gauges import WorkersCollector
from fuseboard.telemetry.sink import LoggingTelemetry, OtelTelemetry
from fuseboard.telemetry.spans import SpanWriter
from fuseboard.telemetry.tool_span import OwnProvider, ToolSpanSource

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer
    from opentelemetry.trace import TracerProvider as AnyTracerProvider

logger = logging.getLogger("fuseboard")

_own_providers: weakref.WeakSet[TracerProvider] = weakref.WeakSet()


def _nothing() -> None:
    pass


def package_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("fuseboard")
    except PackageNotFoundError:
        return "unknown"


class Assembly:
    """One running telemetry.

    Attributes:
        settings: What it was built from.
        registry: Where its metrics are.
        sink: What calls report to.
        pipeline: The export, or None where a foreign provider does all of it.
        when_forked: Called by the first call in a forked child.
    """

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self.settings = settings
        self.when_forked: Callable[[], None] = _nothing
        self.registry = settings.registry or prometheus_client.REGISTRY
        self._runtime = runtime
        self._version = package_version()
        self._losses = Losses(runtime.clock.monotonic)
        self._metrics = Metrics(
            self._version,
            settings.region,
            settings.regions,
            self._losses,
            runtime.clock.monotonic,
            lambda: runtime.abandoned_threads(),  # noqa: PLW0108 - replaced later
        )
        foreign = _foreign_provider(settings.tracer_provider)
        self._resource = _resource(settings, self._version, foreign)
        self._instance = _instance_id(self._resource)
        self._encoder = Encoder(self._identity())
        self.pipeline = self._make_pipeline() if foreign is None or settings.has_endpoint else None
        self._is_foreign = foreign is not None
        self._provider = foreign or self._make_provider()
        self._processor: PipelineProcessor | None = None
        self._source: ToolSpanSource | None = None
        self._logs_ok = settings.log_calls == "all"
        self._call_log = None if settings.log_calls == "off" else CallLog(with_ok=self._logs_ok)
        self.sink = self._make_sink(self._provider)
        _after_fork_in_child(self)

    def _identity(self) -> dict[str, str]:
        """Return the resource attributes that every record of this process carries."""
        known = {
            **self._resource.attributes,
            c.SERVICE_INSTANCE_ID: self._instance,
            c.FUSEBOARD_VERSION: self._version,
        }
        own = (
            c.SERVICE_NAME,
            c.SERVICE_INSTANCE_ID,
            c.FUSEBOARD_VERSION,
            c.DEPLOYMENT_ENVIRONMENT,
            c.CLOUD_REGION,
        )
        return {key: name(str(known[key])) for key in own if key in known}

    def _make_pipeline(self) -> Pipeline:
        settings = self.settings
        urls = {Signal.SPANS: settings.traces_url, Signal.LOGS: settings.logs_url}
        return Pipeline(
            HttpSender(urls, dict(settings.headers)),
            self._encoder,
            self._losses,
            where=redact(settings.endpoint),
            monotonic=self._runtime.clock.monotonic,
            uniform=self._runtime.uniform,
            limits=Limits(
                spans=settings.span_capacity,
                logs=settings.log_capacity,
                request_timeout=settings.request_timeout,
            ),
        )

    def _make_provider(self) -> TracerProvider:
        provider = OwnProvider(self._resource)
        _own_providers.add(provider)
        return provider

    def _attach(self) -> PipelineProcessor | None:
        """Connect the provider with the pipeline."""
        provider = self._provider
        add = getattr(provider, "add_span_processor", None)
        if self.pipeline is None:
            logger.info(
                "spans go through the TracerProvider of the application only; give "
                "fuseboard.init an endpoint to send fuseboard's own spans there as well"
            )
            if add is not None:
                add(DuplicateMarker())
            return None
        if add is None:
            logger.warning(
                "the TracerProvider %s takes no span processor: fuseboard's spans go where it "
                "sends them, not to %s",
                type(provider).__qualname__,
                self.pipeline.where,
            )
            return None
        processor = PipelineProcessor(self.pipeline.offer_span, own_spans_only=self._is_foreign)
        add(processor)
        return processor

    def _make_sink(self, provider: AnyTracerProvider) -> OtelTelemetry:
        settings = self.settings
        events = (
            EventLog(self._version)
            if self.pipeline is None
            else EventLog(self._version, self._resource, self.pipeline.offer_log)
        )
        kind = LoggingTelemetry if self._logs_ok else OtelTelemetry
        sink = kind(
            self._make_writer(provider.get_tracer(c.SCOPE_NAME, self._version)),
            events,
            self._metrics,
            self._losses,
            clock=self._runtime.clock,
            breaker_statuses=lambda: self._runtime.breaker_statuses(),  # noqa: PLW0108 - as above
            identity=dict(self._identity()),
            heartbeat_seconds=settings.heartbeat_seconds,
            capture=Capture(settings.record_arguments, settings.record_results),
        )
        if isinstance(sink, LoggingTelemetry) and self._call_log is not None:
            sink.log_ok = self._call_log.write
        return sink

    def _make_writer(self, tracer: Tracer) -> SpanWriter:
        """Return what writes spans, by the fast path where provider and export are our own."""
        parts = ToolParts()
        own, pipeline = self._provider, self.pipeline
        if (
            isinstance(own, OwnProvider)
            and not self._is_foreign
            and pipeline is not None
            and isinstance(tracer, SdkTracer)
        ):
            scope = InstrumentationScope(c.SCOPE_NAME, self._version)
            self._source = ToolSpanSource(own, tracer, scope, parts, pipeline.offer_span)
            self._encoder.source = self._source
        return SpanWriter(tracer, parts, self._source)

    def start(self) -> None:
        """Register the metrics and let calls report here; nothing is left behind if it fails."""
        self.registry.register(self._metrics)
        try:
            self._processor = self._attach()
            if not self._is_foreign:
                _offer_as_global(self._provider)
        except BaseException:
            self.remove_metrics()
            raise
        self._runtime.region = self.settings.region
        self._runtime.record(
            arguments=self.settings.record_arguments, results=self.settings.record_results
        )
        self._runtime.log_call = self._call_log.write if self._call_log is not None else None
        self._runtime.install(self.sink)

    def exposed(self) -> CollectorRegistry:
        """Return the registry to show: over all worker processes, where they share values."""
        if not is_shared():
            return self.registry
        registry = CollectorRegistry()
        registry.register(WorkersCollector(self._metrics.publish))
        return registry

    def flush(self, timeout: float) -> bool:
        """Send what is recorded so far; return whether the collector confirmed all of it."""
        return self.pipeline.flush(timeout) if self.pipeline else True

    def shutdown(self, timeout: float, words: str = "") -> bool:
        """Send what is left and stop; return whether nothing was lost by stopping.

        Args:
            timeout: Seconds.
            words: The timeout as the log line gives it.
        """
        self.sink.stop()
        self._runtime.log_call = None
        if self.pipeline is None:
            return True
        lost = self.pipeline.shutdown(timeout)
        if self._processor is not None:
            self._processor.end()
        if lost:
            logger.warning(
                "%d telemetry records were lost at exit: the collector at %s did not confirm "
                "them %s",
                lost,
                self.pipeline.where,
                "and is not there"
                if self.pipeline.gave_up
                else f"within {words or f'{timeout:g} s'}",
            )
        return not lost

    def retire(self) -> None:
        """Make way for another ``init``: count nothing more, and take the metrics away."""
        if self._processor is not None:
            self._processor.switch_off()
        self._metrics.in_flight.give_up()
        self.remove_metrics()

    def remove_metrics(self) -> None:
        """Take the metrics off the registry, so that another ``init`` can register its own."""
        try:
            self.registry.unregister(self._metrics)
        except KeyError:
            logger.debug("the metrics were not on the registry any more")

    def after_fork(self) -> None:
        """Make a forked child a process of its own: fresh locks, queues, counts and identity."""
        if hasattr(self.registry, "_lock"):
            # prometheus_client leaves it locked where a thread of the parent was being scraped.
            self.registry._lock = threading.Lock()
        self._losses.reset()
        self._metrics.after_fork()
        if self._source is not None:
            self._source.after_fork()
        self._instance = str(uuid.uuid4())
        self._encoder.identity = self._identity()
        self.sink.identity = dict(self._identity())
        self.sink.after_fork()
        if self.pipeline is not None:
            self.pipeline.after_fork()
        self.sink.when_alive = self.when_forked


def _foreign_provider(given: AnyTracerProvider | None) -> AnyTracerProvider | None:
    """Return the application's provider, if it has one that is not one of ours."""
    provider = given if given is not None else trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider) or provider in _own_providers:
        return None
    return provider


def _offer_as_global(provider: AnyTracerProvider) -> None:
    """Make our provider the global one without taking the place for good.

    OpenTelemetry lets a provider be set once and complains about a second. An application
    that sets its own after ``init`` must neither be ignored nor see that complaint, so the
    place is filled without using up the one time.
    """
    if hasattr(trace, "_TRACER_PROVIDER") and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
        trace._TRACER_PROVIDER = provider
    else:
        trace.set_tracer_provider(provider)


def _resource(
    settings: Settings, fuseboard_version: str, foreign: AnyTracerProvider | None
) -> Resource:
    """Return the resource of our records: the application's, where it has one, and our settings."""
    chosen = {
        c.SERVICE_NAME: settings.service,
        c.DEPLOYMENT_ENVIRONMENT: settings.environment,
        c.CLOUD_REGION: settings.region,
        c.FUSEBOARD_VERSION: fuseboard_version,
    }
    attributes = {key: name(value) for key, value in chosen.items() if value}
    theirs = getattr(foreign, "resource", None)
    if isinstance(theirs, Resource):
        return clean_resource(theirs.merge(Resource(attributes)))
    return clean_resource(Resource.create(attributes))


def _instance_id(resource: Resource) -> str:
    given = resource.attributes.get(c.SERVICE_INSTANCE_ID)
    return str(given) if given else str(uuid.uuid4())


def _after_fork_in_child(assembly: Assembly) -> None:
    if not hasattr(os, "register_at_fork"):
        return
    reference = weakref.WeakMethod(assembly.after_fork)

    def after_fork() -> None:
        method = reference()
        if method is not None:
            method()

    os.register_at_fork(after_in_child=after_fork)
