from __future__ import annotations

import socket

import pytest

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.sockets import bind, is_free, port_of, url


def test_a_taken_port_names_itself_and_the_flag() -> None:
    with bind("127.0.0.1", 0, "--ui-port") as holder:
        port = port_of(holder)
        with pytest.raises(CommandError) as caught:
            bind("127.0.0.1", port, "--ui-port")
        assert not is_free("127.0.0.1", port)
    assert caught.value.exit_code == Exit.USAGE
    assert str(port) in caught.value.message
    assert "--ui-port" in caught.value.message
    assert is_free("127.0.0.1", port)


def test_a_port_just_left_can_be_had_again() -> None:
    with bind("127.0.0.1", 0, "--ui-port") as first:
        port = port_of(first)
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = first.accept()
            accepted.close()
    bind("127.0.0.1", port, "--ui-port").close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(CommandError, match="--host"):
        bind("203.0.113.1", 0, "--ui-port")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("localhost", "http://localhost:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("::", "http://[::1]:1"),
        ("::1", "http://[::1]:1"),
    ],
)
def test_urls_can_be_opened(host: str, expected: str) -> None:
    assert url(host, 1) == expected
