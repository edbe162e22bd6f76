"""The page on reverse proxies and logging in says what the code does; its files work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

from tests.docs.pages import ROOT, blocks, documented, table

from fuseboard_server import below_path
from fuseboard_server.login.gate import HEALTH
from fuseboard_server.login.oidc_file import KEYS, MIN_COOKIE_SECRET, read
from fuseboard_server.login.verdict import MAX_NAME
from fuseboard_server.public import parse

PAGE = (ROOT / "docs" / "reverse-proxy.md").read_text()
(OIDC,) = blocks(PAGE, "toml")


def written(folder: Path, text: str) -> Path:
    (folder / "client-secret").write_text("s3cret")
    (folder / "cookie-secret").write_text("s3cret-" * 6)
    (folder / "oidc.toml").write_text(text)
    return folder / "oidc.toml"


def test_the_file_on_the_page_is_legal(tmp_path: Path) -> None:
    found = read(written(tmp_path, OIDC))
    assert (found.domains, found.emails) == ({"example.com"}, {"kim@partner.example"})
    assert found.secrets("https://ops.example/fuseboard")["auth"]["redirect_uri"] in PAGE


def test_every_key_is_documented_with_its_default(tmp_path: Path) -> None:
    rows = list(table(PAGE, "key"))
    said = {key for cell, *_ in rows for key in re.findall(r"`(\w+)`", cell)}
    assert said == set(KEYS)
    defaults = documented(PAGE, "key")
    default = read(written(tmp_path, OIDC))
    same = read(written(tmp_path, f'{OIDC}session = "{defaults["session"]}"\nallow_anyone = false'))
    assert same == default
    assert defaults["allow_anyone"] == "false"
    assert "session_seconds" in get_type_hints(type(default))


def test_numbers_and_paths_are_those_of_the_code() -> None:
    assert f"more than {MAX_NAME} characters" in PAGE
    assert f"at least {MIN_COOKIE_SECRET} characters" in PAGE
    assert f"answers {below_path.UPGRADE_REQUIRED}" in PAGE
    for path in HEALTH:
        assert f"<prefix>{path}`" in PAGE


def test_addresses_on_the_page_are_such() -> None:
    urls = re.findall(r"--ui-url (\S+)", PAGE)
    assert len(urls) >= 3
    assert {parse(url).path for url in urls} == {"/fuseboard"}


def test_the_file_for_nginx_shows_the_same_lines_for_logging_in_as_the_page() -> None:
    (shown,) = blocks(PAGE, "nginx")
    example = (ROOT / "examples" / "nginx" / "fuseboard.conf").read_text()
    commented = {line.strip().removeprefix("#").strip() for line in example.splitlines()}
    assert {line.strip() for line in shown.splitlines() if line.strip()} <= commented
