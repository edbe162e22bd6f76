"""The command line: which login, what it excludes, and what it needs."""

from __future__ import annotations

import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fuseboard_server.cli import root
from fuseboard_server.commands.logins import login_of
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.login import Oidc, TrustedHeader
from fuseboard_server.login.checks import check_front
from fuseboard_server.public import Front, parse

OIDC = Oidc("https://id.example/", "fuseboard", "cl1ent-s3cret", "c00kie-s3cret")
COMMANDS = ("serve", "dashboard --collector http://127.0.0.1:9")


def test_one_login_or_none() -> None:
    assert login_of(None, (), None) is None
    assert login_of("X-User", (), None) == TrustedHeader("X-User")
    assert login_of("X-User", (ip_network("10.0.0.7"),), None) == TrustedHeader(
        "X-User", (ip_network("10.0.0.7"),)
    )
    assert login_of(None, (), OIDC) is OIDC
    with pytest.raises(click.UsageError, match="one login"):
        login_of("X-User", (), OIDC)
    with pytest.raises(click.UsageError, match="--trust-user-header"):
        login_of(None, (ip_network("10.0.0.7"),), None)


def test_what_a_login_by_a_provider_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "authlib", None)
    monkeypatch.setitem(sys.modules, "authlib.integrations.starlette_client", None)
    with pytest.raises(CommandError, match=r"pip install 'fuseboard\[oidc\]'") as caught:
        login_of(None, (), OIDC)
    assert caught.value.exit_code == Exit.MISSING_EXTRA


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trust-user-header", "X_User"], "X-Forwarded-User"),
        (["--trust-user-header", "X-User", "--trusted-proxy", "0.0.0.0/0"], "anybody"),
        (["--trusted-proxy", "10.0.0.7"], "--trust-user-header NAME"),
        (["--oidc-config", "/nowhere/oidc.toml"], "can't read /nowhere/oidc.toml"),
    ],
)
def test_options_that_can_not_be_are_refused(command: str, options: list[str], words: str) -> None:
    ended = CliRunner().invoke(root, [*command.split(), *options])
    assert ended.exit_code == Exit.USAGE
    assert words in " ".join(ended.output.replace("│", " ").split())


def test_the_file_may_be_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "oidc.toml").write_text('[auth]\nclient_secret = "cl1ent-s3cret"\n')
    monkeypatch.setenv("FUSEBOARD_OIDC_CONFIG", str(tmp_path / "oidc.toml"))
    ended = CliRunner().invoke(root, ["serve"])
    assert ended.exit_code == Exit.USAGE
    assert "oidc.toml: say who is let in" in " ".join(ended.output.split())
    assert "s3cret" not in ended.output


HERE = "http://127.0.0.1:8501"


def test_a_way_back_that_is_another_is_refused_with_the_option_that_mends_it() -> None:
    told: dict[str, Any] = {"redirect_uri": "https://ops.example/fuse/oauth2callback"}
    login = Oidc("https://id.example/", "f", "x", "y", **told)
    with pytest.raises(CommandError, match=r"--ui-url https://ops\.example/fuse,") as caught:
        check_front(Front(HERE, None, login), "127.0.0.1")
    assert caught.value.exit_code == Exit.USAGE
    check_front(Front(HERE, parse("https://ops.example/fuse"), login), "0.0.0.0")


def test_beyond_loopback_the_address_that_people_open_has_to_be_named() -> None:
    with pytest.raises(CommandError, match="--ui-url"):
        check_front(Front("http://0.0.0.0:8501", None, OIDC), "0.0.0.0")
    check_front(Front("http://0.0.0.0:8501", None, TrustedHeader("X-User")), "0.0.0.0")
    check_front(Front("http://0.0.0.0:8501"), "0.0.0.0")


@pytest.mark.parametrize(
    ("address", "is_warned"),
    [("http://ops.example/f", True), ("https://ops.example", False), ("http://localhost:8", False)],
)
def test_cookies_in_the_clear_are_warned_of(
    address: str, is_warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    check_front(Front(HERE, parse(address), OIDC), "127.0.0.1")
    assert ("plain HTTP" in capsys.readouterr().err) is is_warned


@pytest.mark.parametrize(
    ("address", "login", "is_warned"),
    [
        ("https://ops.example/fb", None, True), ("http://10.0.0.7", None, True),
        ("http://127.0.0.1:8080/fb", None, False), ("http://localhost/fb", None, False),
        ("https://ops.example/fb", TrustedHeader("X-User"), False),
        ("https://ops.example/fb", OIDC, False), (None, None, False),
    ],
    ids=str,
)  # fmt: skip
def test_a_proxy_that_makes_it_everybodys_without_a_login_is_warned_of(
    address: str | None, login: Any, is_warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    check_front(Front(HERE, parse(address) if address else None, login), "127.0.0.1")
    told = capsys.readouterr().err
    assert ("no login" in told and "--oidc-config" in told) is is_warned
    assert (f"open {address} sees" in told) is is_warned
