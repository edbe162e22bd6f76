"""Checks of a set-up. Each returns findings: what was seen, and what to do where it is wrong."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from fuseboard import conventions
from fuseboard.errors import ConfigurationError
from fuseboard.policy.file import read_policies
from fuseboard.telemetry.settings import Settings, is_disabled, resolve
from fuseboard_server import allocator, presence
from fuseboard_server.probing import Kind, probe
from fuseboard_server.settings import (
    DATA_FILE,
    DEFAULT_COLLECTOR,
    DEFAULT_HOST,
    DEFAULT_OTLP_GRPC_PORT,
    DEFAULT_OTLP_HTTP_PORT,
    DEFAULT_UI_PORT,
    ENV_ALLOCATOR,
    ENV_READ_TOKEN,
    ENV_TOKEN,
    SERVER_VARIABLES,
)
from fuseboard_server.sockets import is_free, is_loopback

FREE_SPACE_WARNING = 1_000_000_000
"""Bytes; the store itself refuses to write near a full disk."""
FREE_BLOCKS_WORTH_TELLING = 256_000_000
ANSWER_SECONDS = 5.0
OLDEST_PYTHON = (3, 11)


class Grade(StrEnum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        advice: What to do; empty if nothing.
    """

    grade: Grade
    subject: str
    seen: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is checked."""

    data: Path
    collector: str


Check = Callable[[Setup], Iterator[Finding]]


def examine(setup: Setup) -> Iterator[Finding]:
    """Run every check; one that breaks becomes a finding of its own."""
    for check in CHECKS:
        try:
            yield from check(setup)
        except ModuleNotFoundError as error:
            advice = "install it; see packages"
            yield Finding(Grade.FAIL, check.__name__.strip("_"), str(error), advice)
        except Exception as error:
            yield Finding(Grade.FAIL, check.__name__.strip("_"), repr(error), "please report this")


def _versions(_: Setup) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= OLDEST_PYTHON
    yield Finding(
        Grade.OK if good else Grade.FAIL,
        "version",
        f"fuseboard {version('fuseboard')}, Python {python}",
        "" if good else "install Python 3.11 or newer",
    )


def _packages(_: Setup) -> Iterator[Finding]:
    wrong = []
    for requirement in map(Requirement, requires("fuseboard") or []):
        marker = requirement.marker
        if marker is not None and not marker.evaluate({"extra": "dashboard"}):
            continue
        if requirement.name == "fuseboard":
            continue
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing")
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement.name} {found} is not {requirement.specifier}")
    if wrong:
        advice = "pip install --upgrade 'fuseboard[dashboard]'"
        yield Finding(Grade.FAIL, "packages", "; ".join(wrong), advice)
    else:
        yield Finding(Grade.OK, "packages", "all present, in versions that are supported")


def _allocator(setup: Setup) -> Iterator[Finding]:
    if sys.platform != "linux":
        return
    wanted = os.environ.get(ENV_ALLOCATOR)
    if wanted not in (None, "", allocator.SYSTEM):
        yield Finding(
            Grade.WARN,
            "allocator",
            f"{ENV_ALLOCATOR}={wanted!r} means nothing",
            f"{ENV_ALLOCATOR}={allocator.SYSTEM} keeps the C library's; unset it for jemalloc",
        )
    owner = presence.running(setup.data)
    used = None if owner is None else allocator.loaded_by(owner.pid)
    preload = os.environ.get("LD_PRELOAD")
    if owner is not None and used is not None:
        what = "the C library's" if used == allocator.SYSTEM else used
        seen = f"{what}, of the running server (process {owner.pid})"
    elif preload:
        seen = f"LD_PRELOAD={preload[:100]!r} is kept: servers started from here load no jemalloc"
    elif wanted == allocator.SYSTEM:
        seen = f"the C library's, as {ENV_ALLOCATOR} says"
    elif allocator.is_installed():
        seen = "jemalloc, which servers choose by themselves"
    else:
        seen = (
            "the C library's; with jemalloc (Debian's package "
            f"{allocator.PACKAGE}) queries take a third less time"
        )
    yield Finding(Grade.OK, "allocator", seen)


def _configuration(_: Setup) -> Iterator[Finding]:
    known = {value for name, value in vars(conventions).items() if name.startswith("ENV_")}
    known |= SERVER_VARIABLES
    given = sorted(name for name in os.environ if name.startswith("FUSEBOARD_"))
    unknown = [name for name in given if name not in known]
    if unknown:
        yield Finding(
            Grade.WARN,
            "configuration",
            f"{', '.join(unknown)} not known to this version",
            f"check the spelling; known: {', '.join(sorted(known))}",
        )
    else:
        yield Finding(Grade.OK, "configuration", ", ".join(given) or "defaults")
    try:
        _agent_settings()
    except ConfigurationError as error:
        yield Finding(Grade.FAIL, "agents", f"none would start here: {error}", "mend that variable")
    if is_disabled():
        yield Finding(
            Grade.WARN,
            "agents",
            "OTEL_SDK_DISABLED turns their telemetry off here",
            "unset it where agents run",
        )


def _policies(_: Setup) -> Iterator[Finding]:
    named = os.environ.get(conventions.ENV_CONFIG, "").strip()
    if not named:
        return
    try:
        # What it names belongs to the agents, and need not be installed here.
        found = read_policies(Path(named).expanduser().absolute(), imports=False)
    except ConfigurationError as error:
        advice = (
            "mend the file; agents that start with it fail, and `fuseboard.reload()` refuses it"
        )
        yield Finding(Grade.FAIL, "policies", str(error), advice)
    else:
        yield Finding(Grade.OK, "policies", f"{found}: {found.words()}")


def _agent_settings() -> Settings:
    """Return what ``fuseboard.init()`` would decide in this environment."""
    return resolve(
        service=None, region=None, environment=None, endpoint=None, regions=(), headers=None,
        config=None, log_calls=None, registry=None, tracer_provider=None, metrics_port=None,
        record_arguments=False, record_results=False, heartbeat_seconds=15.0, shutdown_timeout=5.0,
    )  # fmt: skip


def _hash_key(_: Setup) -> Iterator[Finding]:
    key = os.environ.get(conventions.ENV_HASH_KEY)
    if key and key != conventions.DEFAULT_HASH_KEY:
        yield Finding(Grade.OK, "hash key", f"{conventions.ENV_HASH_KEY} is set here")
        return
    yield Finding(
        Grade.WARN,
        "hash key",
        "argument hashes use the published default key: a pseudonym, not a secret; whoever "
        "guesses the arguments can confirm the guess",
        f"set {conventions.ENV_HASH_KEY} to a secret of your own, the same for every agent",
    )


def _data_folder(setup: Setup) -> Iterator[Finding]:
    existing = next(path for path in (setup.data, *setup.data.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(
            Grade.FAIL,
            "data folder",
            f"{existing} is no folder that can be written to",
            "choose another with --data DIR or FUSEBOARD_DATA",
        )
        return
    free = shutil.disk_usage(existing).free
    is_tight = free < FREE_SPACE_WARNING
    yield Finding(
        Grade.WARN if is_tight else Grade.OK,
        "data folder",
        f"{setup.data}, {free / 1e9:.1f} GB free",
        "free some space, or keep less with --retention or --max-size" if is_tight else "",
    )


def _data_file(setup: Setup) -> Iterator[Finding]:
    path = setup.data / DATA_FILE
    if not path.exists():
        yield Finding(Grade.OK, "data file", "none yet; `fuseboard serve` makes it")
        return
    owner = presence.running(setup.data)
    size = f"{path.stat().st_size / 1e6:.1f} MB"
    if owner is not None:
        seen = f"{size}, held by the server with process id {owner.pid}"
        yield Finding(Grade.OK, "data file", seen)
        yield from _running_store(owner)
        return
    yield from _resting_store(path)


def _dashboard(setup: Setup) -> Iterator[Finding]:
    """Say who gets to see the dashboard of the server that runs on the folder."""
    owner = presence.running(setup.data)
    if owner is None:
        return
    if owner.login:
        seen = f"at {owner.address}, login: {owner.login}"
        yield Finding(Grade.OK, "dashboard", seen)
        return
    is_here = is_loopback(urlsplit(owner.dashboard).hostname or "")
    if is_here and not owner.public:
        yield Finding(Grade.OK, "dashboard", f"at {owner.address}, for this machine, no login")
        return
    yield Finding(
        Grade.WARN,
        "dashboard",
        f"at {owner.address}, without a login of ours: whoever reaches it sees everything",
        "start it with --oidc-config FILE or --trust-user-header NAME, or have the proxy ask",
    )


def _running_store(owner: presence.Presence) -> Iterator[Finding]:
    from fuseboard_collector.errors import StoreError
    from fuseboard_collector.remote import RemoteReader

    token = os.environ.get(ENV_READ_TOKEN) or None
    try:
        found = RemoteReader(owner.collector, ANSWER_SECONDS, token).describe()
    except StoreError as error:
        yield Finding(Grade.WARN, "store", f"the server does not tell: {error}", "see the message")
        return
    yield from _state(found)


def _resting_store(path: Path) -> Iterator[Finding]:
    from fuseboard_collector.errors import StoreError
    from fuseboard_collector.store import open_at_rest

    try:
        resting = open_at_rest(path)
        try:
            found = resting.describe()
        finally:
            resting.close()
    except StoreError as error:
        yield Finding(Grade.FAIL, "data file", str(error), "see the message")
        return
    size = f"{path.stat().st_size / 1e6:.1f} MB, readable"
    yield Finding(Grade.OK, "data file", f"{size}, schema version {found['schema_version']}")
    yield from _state(found)


def _state(found: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what a store says of itself, where it takes no data or wants attention."""
    reason = found.get("unavailable_because")
    if reason:
        yield Finding(Grade.FAIL, "store", f"takes no data: {reason}", "see the message")
    staged = found.get("staged_traces") or (found.get("staged") or {}).get("traces")
    if staged:
        seen = f"{staged} traces of other instrumentation wait to be assembled"
        yield Finding(Grade.OK, "store", seen)
    free = found.get("free_block_bytes") or 0
    if free > FREE_BLOCKS_WORTH_TELLING:
        yield Finding(
            Grade.OK,
            "store",
            f"{free / 1e6:.0f} MB in the file are free; new calls are put there",
            "`fuseboard store compact` gives them back to the disk",
        )


def _ports(setup: Setup) -> Iterator[Finding]:
    owner = presence.running(setup.data)
    addresses = (owner.dashboard, owner.collector, f"//{owner.grpc}") if owner is not None else ()
    used_by_owner = {urlsplit(address).port for address in addresses}
    wanted = (
        ("--ui-port", DEFAULT_UI_PORT),
        ("--otlp-http-port", DEFAULT_OTLP_HTTP_PORT),
        ("--otlp-grpc-port", DEFAULT_OTLP_GRPC_PORT),
    )
    for flag, port in wanted:
        subject = f"port {port}"
        if port in used_by_owner:
            yield Finding(Grade.OK, subject, "used by the running server")
        elif is_free(DEFAULT_HOST, port):
            yield Finding(Grade.OK, subject, "free")
        else:
            yield Finding(
                Grade.WARN,
                subject,
                "in use by another process",
                f"stop that process, or start with `fuseboard serve {flag} PORT`",
            )


def _collector(setup: Setup) -> Iterator[Finding]:
    reply = probe(setup.collector, _headers_for(setup))
    grade, seen, advice = VERDICTS[reply.kind]
    seen = seen.format(url=setup.collector)
    yield Finding(grade, "collector", f"{seen}: {reply.detail}" if reply.detail else seen, advice)


def _headers_for(setup: Setup) -> tuple[tuple[str, str], ...]:
    """Return the server's token for its own address, the agents' headers for theirs, or none."""
    collector = setup.collector
    owner = presence.running(setup.data)
    token = os.environ.get(ENV_TOKEN)
    if token and owner is not None and owner.collector == collector:
        return (("authorization", f"Bearer {token}"),)
    try:
        settings = _agent_settings()
    except ConfigurationError:
        return ()
    return settings.headers if settings.endpoint.rstrip("/") == collector.rstrip("/") else ()


_NAME_IT = "name the address after 'OTLP/HTTP' that `fuseboard serve` prints"
VERDICTS = {
    Kind.OTLP: (Grade.OK, "answers at {url} and takes OTLP", ""),
    Kind.SILENCE: (
        Grade.WARN,
        "nothing answers at {url}",
        "start `fuseboard serve`, or name a running one with --collector URL",
    ),
    Kind.BUSY: (Grade.WARN, "{url} takes no telemetry at the moment", "see its log; try again"),
    Kind.REFUSES: (
        Grade.FAIL,
        "{url} wants to know who sends",
        (
            f"set {conventions.ENV_ENDPOINT} and {conventions.ENV_HEADERS} as agents have them, "
            f"or {ENV_TOKEN} for the server on this folder"
        ),
    ),
    Kind.ASTRAY: (Grade.FAIL, "{url} takes no telemetry", _NAME_IT),
    Kind.ELSE: (Grade.FAIL, "{url} is no OTLP/HTTP endpoint", _NAME_IT),
}
"""What each answer of the collector means: grade, what was seen, what to do."""

CHECKS: tuple[Check, ...] = (
    _versions,
    _packages,
    _allocator,
    _configuration,
    _policies,
    _hash_key,
    _data_folder,
    _data_file,
    _dashboard,
    _ports,
    _collector,
)


def default_collector(data: Path) -> str:
    """Return the address of the server on a data folder, else where an agent would send to."""
    owner = presence.running(data)
    if owner is not None:
        return owner.collector
    try:
        return _agent_settings().endpoint
    except ConfigurationError:
        return DEFAULT_COLLECTOR  # the fault is a finding of its own
