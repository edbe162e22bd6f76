"""Addresses after --store."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store import Store, open_any
from fuseboard_collector.store.clickhouse.address import Address, is_address, parse
from fuseboard_server.cli import root


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("clickhouse://host", Address("host", 8123)),
        ("clickhouse://u:p%40ss%2F@host:9/db", Address("host", 9, "db", "u", "p@ss/")),
        ("clickhouses://host/db", Address("host", 8443, "db", secure=True)),
        ("clickhouse://host:443/", Address("host", 443, secure=True)),
        ("clickhouse://host/?secure=true", Address("host", 8443, secure=True)),
        ("clickhouse://host:8443/?secure=false", Address("host", 8443)),
        ("ClickHouse://[::1]:8123/x", Address("::1", 8123, "x")),
        ("clickhouse://u:@host", Address("host", 8123, user="u")),
    ],
)
def test_an_address_is_read(written: str, meant: Address) -> None:
    assert parse(written) == meant


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("http://u:s3cret@host", "names no host"),
        ("clickhouse:///db", "names no host"),
        ("clickhouse://u:s3cret@host:port/db", "can't be read"),
        ("clickhouse://u:s3cret@host/a;b", "letters, digits and underscores"),
        ("clickhouse://u:s3cret@host/db?secure=perhaps", "true or false"),
        ("clickhouse://u:s3cret@host/db?compress=1", "unknown option 'compress'"),
    ],
)
def test_a_wrong_address_is_refused_without_its_password(written: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as caught:
        parse(written)
    assert "s3cret" not in str(caught.value)
    assert "clickhouse://user@host:8123/fuseboard" in str(caught.value)


def test_a_password_is_never_shown() -> None:
    address = parse("clickhouse://u:s3cret@host/db")
    assert address.password == "s3cret"
    assert "s3cret" not in f"{address} {address!r}"
    assert str(address) == "clickhouse://u@host:8123/db"


def test_the_environment_gives_a_password_that_the_address_lacks() -> None:
    assert parse("clickhouse://u@host", "from-outside").password == "from-outside"
    assert parse("clickhouse://u:own@host", "from-outside").password == "own"


def test_paths_are_no_addresses(tmp_path: Path) -> None:
    assert not is_address("data/fuseboard.duckdb")
    assert not is_address("clickhouse")
    store = open_any(tmp_path / "fuseboard.duckdb")
    assert isinstance(store, Store)
    store.close()


@pytest.mark.parametrize(
    "arguments", [["store", "init"], ["store", "attach-otel"], ["export", "calls"]]
)
def test_a_server_that_does_not_answer_is_named_without_the_password(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSEBOARD_STORE_PASSWORD", "s3cret")
    url = "clickhouse://u@127.0.0.1:9/db"
    done = CliRunner().invoke(root, [*arguments, "--store", url], prog_name="fuseboard")
    assert done.exit_code == 1
    assert "no answer from clickhouse://u@127.0.0.1:9/db" in done.output
    assert "s3cret" not in done.output
