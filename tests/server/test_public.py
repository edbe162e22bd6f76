from __future__ import annotations

import pytest
from click.testing import CliRunner

from fuseboard_server.cli import root
from fuseboard_server.login import TrustedHeader
from fuseboard_server.public import Front, PublicAddress, names, parse


@pytest.mark.parametrize(
    ("text", "origin", "host", "path"),
    [
        ("https://ops.example/fuseboard", "https://ops.example", "ops.example", "/fuseboard"),
        ("https://Ops.Example:443/a/b/", "https://ops.example", "ops.example", "/a/b"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1", ""),
        ("http://[::1]:80//x//", "http://[::1]", "::1", "/x"),
        (" https://ops.example:80/ ", "https://ops.example:80", "ops.example", ""),
    ],
)
def test_an_address_is_taken_apart(text: str, origin: str, host: str, path: str) -> None:
    found = parse(text)
    assert found == PublicAddress(origin, host, path)
    assert parse(found.url) == found


@pytest.mark.parametrize(
    "text",
    [
        "ops.example/fuseboard", "ftp://ops.example", "https://", "https://ops.example/?a=b",
        "https://kim@ops.example/", "https://ops.example/#top", "https://ops.example:0x/",
        "https://ops.example/a b", "https://ops.example/../etc", "https://ops.example/{path}",
        "https://ops.example/%2e%2e/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["serve", "dashboard --collector http://127.0.0.1:9"])
def test_what_no_browser_could_open_is_refused_with_an_example(text: str, command: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)
    ended = CliRunner().invoke(root, [*command.split(), "--ui-url", text])
    assert ended.exit_code == 2
    assert "--ui-url" in ended.output


def test_the_address_is_answered_to_by_name_and_told_with_our_own() -> None:
    public = parse("https://ops.example/fuseboard")
    assert names(public, ["other.example"]) == ("other.example", "ops.example")
    assert names(None, ["other.example"]) == ("other.example",)
    assert Front("http://127.0.0.1:8501").lines == ["  Dashboard  http://127.0.0.1:8501"]
    front = Front("http://127.0.0.1:8501", public, TrustedHeader("X-Forwarded-User"))
    assert (front.address, front.path) == ("https://ops.example/fuseboard", "/fuseboard")
    assert front.lines == [
        "  Dashboard  https://ops.example/fuseboard (a proxy's; its own is http://127.0.0.1:8501)",
        "  Login      header X-Forwarded-User of a proxy at this machine",
    ]
