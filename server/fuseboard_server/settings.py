"""Settings of the server, where its data live, and durations in words."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuseboard_collector.store.clickhouse.address import Address
    from fuseboard_dashboard.objectives import ObjectiveBook
    from fuseboard_server.login import Login
    from fuseboard_server.public import PublicAddress

DEFAULT_HOST = "127.0.0.1"
DEFAULT_UI_PORT = 8501
DEFAULT_OTLP_HTTP_PORT = 4318
DEFAULT_OTLP_GRPC_PORT = 4317
DEFAULT_COLLECTOR = f"http://{DEFAULT_HOST}:{DEFAULT_OTLP_HTTP_PORT}"
DATA_FILE = "fuseboard.duckdb"
ENV_DATA = "FUSEBOARD_DATA"
ENV_STORE = "FUSEBOARD_STORE"
ENV_STORE_PASSWORD = "FUSEBOARD_STORE_PASSWORD"  # noqa: S105 (its name, not its value)
ENV_TOKEN = "FUSEBOARD_TOKEN"  # noqa: S105 (a name)
ENV_READ_TOKEN = "FUSEBOARD_READ_TOKEN"  # noqa: S105 (a name)
ENV_OIDC_CONFIG = "FUSEBOARD_OIDC_CONFIG"
ENV_ALLOCATOR = "FUSEBOARD_ALLOCATOR"
ENV_OBJECTIVES = "FUSEBOARD_OBJECTIVES"
SERVER_VARIABLES = frozenset(
    {ENV_DATA, ENV_STORE, ENV_STORE_PASSWORD, ENV_TOKEN, ENV_READ_TOKEN, ENV_OIDC_CONFIG,
     ENV_ALLOCATOR, ENV_OBJECTIVES}
)  # fmt: skip
"""Every variable that the command line reads; the agent's are in the conventions."""

SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
SECONDS_PER_DAY = 86400.0
MAX_DURATION = 36500 * SECONDS_PER_DAY
"""Longer ones would lead to times that no calendar has."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What ``fuseboard serve`` was asked to do.

    Attributes:
        data: Folder of the data file; made if missing.
        host: Address that OTLP and the read API listen on.
        ui_host: Address that the dashboard listens on.
        otlp_grpc_port: None: no OTLP/gRPC.
        token: What senders of telemetry must have; None: anybody may.
        read_token: What readers over the read API must have; None: anybody may.
        retention_days: Age in days after which calls are removed; None keeps everything.
        max_bytes: Size of the data file at which the oldest calls are removed; None for any.
        memory_bytes: What the database engine may use; None for a quarter of the machine's.
        webhooks: Addresses that alert notifications are posted to.
        alert_time_scale: Factor on every window and hold of the alerts; 1 is real.
        raises_alerts: Whether alerts are evaluated here, and not by another server on the store.
        ui_url: The dashboard's address as people open it; None: where it listens.
        allow_hosts: Further names that the server answers to.
        login: How people log in to the dashboard; None: nobody has to.
        keep_arguments: Whether the arguments of foreign calls are stored.
        demo: Whether the calls come from the demo agent.
        store: A ClickHouse database to store in, instead of a file in ``data``.
        objectives: What is asked of tools; None: the defaults.
    """

    data: Path
    host: str = DEFAULT_HOST
    ui_host: str = DEFAULT_HOST
    ui_port: int = DEFAULT_UI_PORT
    otlp_http_port: int = DEFAULT_OTLP_HTTP_PORT
    otlp_grpc_port: int | None = DEFAULT_OTLP_GRPC_PORT
    retention_days: float | None = 30.0
    max_bytes: int | None = None
    memory_bytes: int | None = None
    webhooks: tuple[str, ...] = ()
    alert_time_scale: float = 1.0
    raises_alerts: bool = True
    ui_url: PublicAddress | None = None
    allow_hosts: tuple[str, ...] = ()
    login: Login | None = None
    keep_arguments: bool = False
    demo: bool = False
    store: Address | None = None
    objectives: ObjectiveBook | None = None
    token: str | None = field(default=None, repr=False)
    read_token: str | None = field(default=None, repr=False)


def default_data_dir() -> Path:
    """Return where data live unless a command is told otherwise.

    ``$FUSEBOARD_DATA``, else ``$XDG_DATA_HOME/fuseboard``, else ``~/.local/share/fuseboard``.
    """
    named = os.environ.get(ENV_DATA)
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification has relative paths ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "fuseboard"


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``500MB``, ``20GB``, ``1.5TB`` or ``4GiB``.

    Raises:
        ValueError: If the text is no size.
    """
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([kmgt])(i?)b\s*", text.lower())
    if match is None:
        raise ValueError(
            f"{text!r} is no size; write a number and a unit, for example 500MB, 20GB or 1.5TB"
        )
    return int(float(match[1]) * (1024 if match[3] else 1000) ** ("kmgt".index(match[2]) + 1))


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as ``90s``, ``15m``, ``1h``, ``30d`` or ``2w``.

    Raises:
        ValueError: If the text is no positive duration, or one of over a hundred years.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", text.lower())
    seconds = float(match[1]) * SECONDS_PER_UNIT[match[2]] if match else 0.0
    if seconds <= 0:
        raise ValueError(
            f"{text!r} is no duration; write a number above 0 and a unit, "
            "for example 90s, 15m, 1h, 30d or 2w"
        )
    if seconds > MAX_DURATION:
        raise ValueError(f"{text!r} is over a hundred years (36500d)")
    return seconds
