"""Switching the telemetry on and off: ``init``, ``flush``, ``shutdown``, ``/metrics``."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from fuseboard.calls.from_file import find, prepare, use, warn_of_unknown_tools
from fuseboard.classification.user import load_classifiers
from fuseboard.conventions import HEARTBEAT_INTERVAL_SECONDS, METRICS_PORT
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child
from fuseboard.runtime import RUNTIME, NullTelemetry
from fuseboard.workers import (
    finish_with_the_worker,
    forget_this_worker,
    shares_metrics,
    warn_of_unseen_worker,
)

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from opentelemetry.trace import TracerProvider
    from prometheus_client import CollectorRegistry

    from fuseboard.telemetry.assembly import Assembly
    from fuseboard.telemetry.settings import Settings

logger = logging.getLogger("fuseboard")

DEFAULT_TIMEOUT: Final = 5.0


class _State:
    """What ``init`` left behind in this process."""

    def __init__(self) -> None:
        self.renew_lock()
        self.assembly: Assembly | None = None
        self.is_stopped = False
        self.is_disabled = False
        self.is_exit_installed = False
        self.servers: dict[tuple[str, int], WSGIServer] = {}

    def renew_lock(self) -> None:
        """Make a new lock, as a forked child must."""
        self.lock = threading.RLock()


_STATE: Final = _State()
after_fork_in_child(_STATE.renew_lock)


def init(
    service: str | None = None,
    *,
    region: str | None = None,
    environment: str | None = None,
    endpoint: str | None = None,
    regions: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
    config: str | os.PathLike[str] | None = None,
    log_calls: Literal["problems", "all", "off"] | None = None,
    registry: CollectorRegistry | None = None,
    tracer_provider: TracerProvider | None = None,
    metrics_port: int | None = None,
    record_arguments: bool = False,
    record_results: bool = False,
    heartbeat_seconds: float = HEARTBEAT_INTERVAL_SECONDS,
    shutdown_timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Send what tools do to a collector and count it for Prometheus.

    Each setting is taken from its argument, else from ``FUSEBOARD_*``, else from ``OTEL_*``.
    A TracerProvider that the application has set, or gives here, is used and not replaced;
    with an ``endpoint``, fuseboard's own spans are then sent there in addition.
    ``OTEL_SDK_DISABLED=true`` switches everything off. Nothing here waits for the collector.

    Args:
        service: Name of the agent (``service.name``); also FUSEBOARD_SERVICE.
        region: Where this process runs (``cloud.region``); also FUSEBOARD_REGION.
        environment: For example ``production``; also FUSEBOARD_ENVIRONMENT.
        endpoint: Base URL of the collector; also FUSEBOARD_ENDPOINT or
            OTEL_EXPORTER_OTLP_ENDPOINT; default ``http://127.0.0.1:4318``.
        regions: Regions that tools will be called in, so that their metrics start at zero.
        headers: Sent with each export, for example ``Authorization``.
        config: File of policies per tool (``fuseboard.toml``), which win over those in the code;
            also FUSEBOARD_CONFIG.
        log_calls: Which calls are logged, one record each, by the logger ``fuseboard.calls``:
            ``problems`` (the default) for those that are not ``ok``, ``all`` or ``off``; also
            FUSEBOARD_LOG_CALLS.
        registry: Prometheus registry for the metrics; default the global one.
        tracer_provider: OpenTelemetry provider to use instead of the global one.
        metrics_port: Serve ``/metrics`` on this port of the loopback interface.
        record_arguments: Record the arguments of calls, bounded and redacted.
        record_results: Record the returned values, bounded and redacted.
        heartbeat_seconds: Interval of the process's heartbeat, seconds.
        shutdown_timeout: Seconds that the end of the process may take because of the
            collector; the collector is waited for four fifths of it.

    Raises:
        ConfigurationError: A setting is not legal, or ``init`` ran before with others. Nothing
            has changed then.

    Since 0.1.0.
    """
    from fuseboard.telemetry.settings import is_disabled, resolve

    settings = resolve(
        service=service,
        region=region,
        environment=environment,
        endpoint=endpoint,
        regions=regions,
        headers=headers,
        config=find(config),
        log_calls=log_calls,
        registry=registry,
        tracer_provider=tracer_provider,
        metrics_port=metrics_port,
        record_arguments=record_arguments,
        record_results=record_results,
        heartbeat_seconds=heartbeat_seconds,
        shutdown_timeout=shutdown_timeout,
    )
    if _runs_already(settings):
        return
    # Without a lock held, since what a file names is imported, and who knows what that does.
    policies = prepare(settings.config)
    load_classifiers()
    with _STATE.lock:
        if _runs_already(settings):
            return
        if is_disabled():
            _STATE.is_disabled = True
            RUNTIME.install(_Silent())
        else:
            _start(settings)
        use(policies)


def _runs_already(settings: Settings) -> bool:
    """Tell whether ``init`` ran before; raise if that was with other settings."""
    from fuseboard.telemetry.settings import is_disabled

    with _STATE.lock:
        if _STATE.assembly is None or _STATE.is_stopped or is_disabled():
            return False
        _require_equal(_STATE.assembly.settings.differences(settings))
        return True


class _Silent(NullTelemetry):
    """Records nothing, on purpose and hence without a word."""

    def __init__(self) -> None:
        super().__init__()
        self._said = True


def _require_equal(differences: list[str]) -> None:
    if differences:
        raise ConfigurationError(
            f"fuseboard.init ran before with other values for {', '.join(differences)}: "
            "call it once, or call fuseboard.shutdown() first"
        )


def _start(settings: Settings) -> None:
    from fuseboard.telemetry import exit as process_exit
    from fuseboard.telemetry.assembly import Assembly

    if _STATE.assembly is not None:
        _close_servers()
        _STATE.assembly.retire()
    assembly = Assembly(settings, RUNTIME)
    port = settings.metrics_port
    # What may fail comes first, so that a failed init leaves nothing behind.
    if port is not None:
        _serve_unless_shared(port, assembly.exposed())
    try:
        assembly.start()
    except BaseException:
        _close_servers()
        raise
    assembly.sink.when_alive = warn_of_unknown_tools
    assembly.when_forked = _begin_in_fork
    _STATE.assembly = assembly
    _STATE.is_stopped = False
    _STATE.is_disabled = False
    if not _STATE.is_exit_installed:
        _STATE.is_exit_installed = True
        process_exit.install(_shutdown_at_exit, settings.shutdown_timeout)
    # Each time: this may be a child of the process in which ``init`` ran first.
    finish_with_the_worker(_shutdown_at_exit)


def _begin_in_fork() -> None:
    """Take over in a forked worker that called its first tool."""
    # The parent's socket, on which nobody in here answers.
    served, _STATE.servers = _STATE.servers, {}
    for server in served.values():
        server.socket.close()
    if served:
        warn_of_unseen_worker()
    finish_with_the_worker(_shutdown_at_exit)


def _close_servers() -> None:
    """Stop serving metrics of a telemetry that has ended."""
    while _STATE.servers:
        _, server = _STATE.servers.popitem()
        server.shutdown()
        server.server_close()


def _shutdown_at_exit() -> None:
    assembly = _STATE.assembly
    if assembly is not None:
        # A second Ctrl-C means: now.
        with contextlib.suppress(KeyboardInterrupt):
            # A fifth is left for the interpreter's own end, also on a busy machine, so that the
            # whole takes no longer than was asked for.
            whole = assembly.settings.shutdown_timeout
            _stop(0.8 * whole, f"the {0.8 * whole:g} s that shutdown_timeout={whole:g} leaves it")
            forget_this_worker()


def _legal_timeout(function: str, timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise ConfigurationError(
            f"fuseboard.{function}: timeout={timeout!r} is not legal: use seconds from 0"
        )
    return min(float(timeout), threading.TIMEOUT_MAX)


def flush(timeout: float = DEFAULT_TIMEOUT) -> bool:
    """Send everything recorded so far.

    Args:
        timeout: Seconds to wait at most.

    Returns:
        Whether the collector confirmed all of it. True where nothing is exported.

    Since 0.1.0.
    """
    timeout = _legal_timeout("flush", timeout)
    assembly = _STATE.assembly
    return assembly.flush(timeout) if assembly is not None else True


def shutdown(timeout: float = DEFAULT_TIMEOUT) -> bool:
    """Send what is left and stop the telemetry; tools go on working.

    Calls that are still running then count in the metrics when they end, and their spans as
    lost; calls that begin later are not recorded. Runs by itself at the end of the process.

    Args:
        timeout: Seconds to wait at most; what is then unsent is counted and lost.

    Returns:
        Whether nothing was lost.

    Since 0.1.0.
    """
    timeout = _legal_timeout("shutdown", timeout)
    return _stop(timeout, f"{timeout:g} s")


def _stop(timeout: float, words: str) -> bool:
    """Shut down within ``timeout`` seconds, which ``words`` say to the reader of the log."""
    with _STATE.lock:
        assembly = _STATE.assembly
        if assembly is None or _STATE.is_stopped:
            return True
        _STATE.is_stopped = True
        from fuseboard.telemetry.afterwards import Afterwards

        RUNTIME.install(Afterwards(assembly.sink))
    return assembly.shutdown(timeout, words)


def serve_metrics(port: int = METRICS_PORT, host: str = "127.0.0.1") -> int:
    """Serve the metrics for Prometheus at ``http://host:port/metrics``.

    Args:
        port: 0 takes any free port.
        host: Interface to listen on; anything but loopback shows the metrics to the network.

    Returns:
        The port.

    Raises:
        ConfigurationError: The port is not legal or in use, or ``init`` did not run.

    Since 0.1.0.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ConfigurationError(
            f"fuseboard.serve_metrics: port={port!r} is not legal: use a port from 0 to 65535"
        )
    with _STATE.lock:
        if (host, port) in _STATE.servers:
            return port
        return _serve("serve_metrics", port, host, _registry("serve_metrics"))


def _serve(where: str, port: int, host: str, registry: CollectorRegistry) -> int:
    from prometheus_client import start_http_server

    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as fault:
        raise ConfigurationError(
            f"fuseboard.{where}: cannot listen on {host}:{port} ({fault.strerror}): "
            "choose another port, or 0 for any free one"
        ) from fault
    bound = int(server.server_port)
    _STATE.servers[host, bound] = server
    return bound


def _serve_unless_shared(port: int, registry: CollectorRegistry) -> None:
    """Serve the metrics; where workers share them, the first worker serves for all."""
    try:
        _serve(f"init: metrics_port={port}", port, "127.0.0.1", registry)
    except ConfigurationError as fault:
        if not shares_metrics():
            raise
        logger.info("%s; it is taken for another worker that serves the metrics of all", fault)


def _registry(function: str) -> CollectorRegistry:
    if _STATE.assembly is not None:
        return _STATE.assembly.exposed()
    if _STATE.is_disabled:
        from prometheus_client import CollectorRegistry

        return CollectorRegistry()
    raise ConfigurationError(f"call fuseboard.init() before fuseboard.{function}()")


def metrics_text(accept: str | None = None) -> tuple[bytes, str]:
    """Return the metrics as text, for an application that serves ``/metrics`` itself.

    Args:
        accept: The ``Accept`` header of the request, which chooses the format.

    Returns:
        The body, and its content type.

    Raises:
        ConfigurationError: ``init`` did not run.

    Since 0.1.0.
    """
    from prometheus_client.exposition import choose_encoder

    registry = _registry("metrics_text")
    encode, content_type = choose_encoder(accept or "")
    return encode(registry), content_type
