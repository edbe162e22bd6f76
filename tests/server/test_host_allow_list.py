"""DNS rebinding: a foreign name that points at this machine gets no answer."""

from __future__ import annotations

import pytest

from fuseboard_server.hosts import HostAllowList, host_name
from fuseboard_server.sockets import is_loopback


@pytest.mark.parametrize(
    "header",
    ["localhost", "LOCALHOST:8501", "127.0.0.1:4318", "[::1]:8501", "[::1]", "localhost.:1"],
)
def test_loopback_names_are_answered(header: str) -> None:
    assert HostAllowList("127.0.0.1").allows(header)


@pytest.mark.parametrize(
    "header",
    [
        "", " ", "evil.example", "evil.example:8501", "localhost.evil.example", "127.0.0.1.evil.io",
        "localhost:80@evil.example", "[::1", "[::1]x", "127.0.0.1:port", "10.0.0.7", ":8501",
        "localhost/../", "http://localhost",
    ],
)  # fmt: skip
def test_anything_else_is_not(header: str) -> None:
    assert not HostAllowList("127.0.0.1").allows(header)


def test_a_given_name_and_an_allowed_one_are_answered() -> None:
    hosts = HostAllowList("localhost", ["Board.Example"])
    assert hosts.allows("board.example:443")
    assert not hosts.allows("other.example")


def test_beyond_loopback_addresses_are_answered_and_foreign_names_are_not() -> None:
    hosts = HostAllowList("0.0.0.0")
    assert hosts.allows("192.168.1.7:8501")
    assert hosts.allows("[fe80::1]:8501")
    assert not hosts.allows("evil.example:8501")


def test_names_are_read_without_port_and_brackets() -> None:
    assert host_name("Example.ORG:80") == "example.org"
    assert host_name("[2001:db8::1]:80") == "2001:db8::1"
    assert host_name("a:b") is None


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("example.org", False)],
)  # fmt: skip
def test_what_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
