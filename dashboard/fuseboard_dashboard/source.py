"""Where pages get their data from: set once by the server, or by a test, before the app runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from fuseboard.errors import ConfigurationError
from fuseboard_alerts.mute_book import MuteBook
from fuseboard_collector.reading import Reader
from fuseboard_dashboard.objectives import ObjectiveBook

VIEWER_HEADER: Final = "X-Fuseboard-Viewer"
"""In which the server tells who is logged in; what clients send under this name it drops."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Source:
    """What the dashboard is about.

    Attributes:
        reader: Answers the ``page_…`` queries: the store in this process, or a remote one.
        alert_time_scale: The evaluator's windows and holds are multiplied by it; 1 = real time.
        otlp_endpoint: Base URL that agents send to; shown on the first-run page.
        demo: Whether the bundled demo is running.
        objectives: What is asked of the tools.
        has_login: Whether the server lets in only whom it knows.
        can_log_out: Whether that login is ours to end; a proxy's is not.
        mutes: Takes mutes of alerts; None where this dashboard can only read.
        clock: Tells the time, in UTC.
    """

    reader: Reader
    alert_time_scale: float = 1.0
    otlp_endpoint: str = "http://127.0.0.1:4318"
    demo: bool = False
    objectives: ObjectiveBook = field(default_factory=ObjectiveBook)
    has_login: bool = False
    can_log_out: bool = False
    mutes: MuteBook | None = None
    clock: Callable[[], datetime] = _now


_configured: list[Source] = []


def configure(source: Source) -> None:
    """Make ``source`` what every page reads from now on, in every session.

    Args:
        source: Replaces the one configured before.
    """
    _configured[:] = [source]


def current() -> Source:
    """Return the configured source.

    Raises:
        ConfigurationError: If ``configure`` was never called.
    """
    if not _configured:
        raise ConfigurationError(
            "the dashboard has no data source: start it with `fuseboard serve`, or call "
            "fuseboard_dashboard.source.configure(Source(reader=...)) before the app runs"
        )
    return _configured[0]
