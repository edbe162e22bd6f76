"""Ports for servers that come and go."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def free_ports() -> Iterator[int]:
    """Yield ports that nobody listens on; a killed server's own may take a while to be free."""

    def ports() -> Iterator[int]:
        while True:
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            yield port

    return ports()
