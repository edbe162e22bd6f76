"""What all tests need: a plain signal set-up, and programs from outside.

Programs that are missing make their tests skip; under CI=true they make them fail.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _hangups_are_heard() -> Iterator[None]:
    """Undo what nohup does: processes that tests start inherit whether SIGHUP is ignored."""
    previous = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, previous)


def _find(package: str, *names: str) -> Path:
    for name in names:
        found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
        if found:
            return Path(found)
    message = (
        f"{' or '.join(names)} not found: install Debian's package {package} "
        f"(apt-get install {package}); `make test` does so when run as root"
    )
    if os.environ.get("CI") == "true":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@pytest.fixture(scope="session")
def prometheus_binary() -> Path:
    """Path of Prometheus itself."""
    return _find("prometheus", "prometheus")


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Path of promtool, which checks and tests rules."""
    return _find("prometheus", "promtool")


@pytest.fixture(scope="session")
def alertmanager_binary() -> Path:
    """Path of Alertmanager, under Debian's name or upstream's."""
    return _find("prometheus-alertmanager", "prometheus-alertmanager", "alertmanager")


@pytest.fixture(scope="session")
def redis_binary() -> Path:
    """Path of the Redis server."""
    return _find("redis-server", "redis-server", "valkey-server")


@pytest.fixture(scope="session")
def nginx_binary() -> Path:
    """Path of nginx."""
    return _find("nginx-light", "nginx")


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Path of Chromium."""
    return _find("chromium", "chromium", "chromium-browser")
