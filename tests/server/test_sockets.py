from __future__ import annotations

import socket

import pytest

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.sockets import Wanted, bind, bind_all, is_free, port_of, url


def test_a_taken_port_names_itself_and_the_flag() -> None:
    with bind("127.0.0.1", 0, "--ui-port") as holder:
        holder.listen()
        port = port_of(holder)
        with pytest.raises(CommandError) as caught:
            bind("127.0.0.1", port, "--ui-port")
        assert not is_free("127.0.0.1", port)
    assert caught.value.exit_code == Exit.USAGE
    assert str(port) in caught.value.message
    assert "--ui-port" in caught.value.message
    assert is_free("127.0.0.1", port)


def test_every_taken_port_is_said_at_once_and_none_is_kept() -> None:
    flags = ("--ui-port", "--otlp-http-port", "--metrics-port")
    first, free, last = (bind("127.0.0.1", 0, flag) for flag in flags)
    with first, last:
        first.listen()
        last.listen()
        ports = dict(zip(flags, map(port_of, (first, free, last)), strict=True))
        free.close()
        with pytest.raises(CommandError) as caught:
            bind_all(Wanted("127.0.0.1", port, flag) for flag, port in ports.items())
        assert is_free("127.0.0.1", ports["--otlp-http-port"])
    assert caught.value.exit_code == Exit.USAGE
    lines = caught.value.message.splitlines()
    assert len(lines) == 2
    for line, flag in zip(lines, ("--ui-port", "--metrics-port"), strict=True):
        assert f"port {ports[flag]} " in line
        assert f"{flag} PORT" in line
    with pytest.raises(CommandError) as caught:
        bind_all(Wanted("203.0.113.1", 0, flag) for flag in flags)
    assert "--host" in caught.value.message


def test_sockets_come_in_the_order_of_their_flags() -> None:
    one, two = bind_all(Wanted("127.0.0.1", 0, flag) for flag in ("--ui-port", "--otlp-http-port"))
    with one, two:
        assert port_of(one) != port_of(two)


def test_a_port_just_left_can_be_had_again() -> None:
    with bind("127.0.0.1", 0, "--ui-port") as first:
        first.listen()
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
