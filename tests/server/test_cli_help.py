"""The command line explains itself and refuses what can't work, with the way out."""

from __future__ import annotations

from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from fuseboard_server.cli import root
from fuseboard_server.commands import COMMANDS
from fuseboard_server.exits import Exit
from fuseboard_server.settings import DEFAULT_COLLECTOR, ENV_STORE


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(root, list(arguments), prog_name="fuseboard")
    return result.exit_code, result.output


def test_version() -> None:
    assert run("--version") == (0, f"fuseboard, version {version('fuseboard')}\n")


def test_help_lists_every_command_and_every_exit_code() -> None:
    code, text = run("--help")
    assert code == 0
    for name, (_, line) in COMMANDS.items():
        assert name in text
        assert line in text
    for exit_code in Exit:
        assert f"  {int(exit_code)}  " in text


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_has_help_that_describes_every_option(name: str) -> None:
    command = root.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    commands = [command, *getattr(command, "commands", {}).values()]
    assert all(one.help for one in commands)
    code, text = run(name, "--help")
    assert code == 0
    assert "Usage: fuseboard" in text
    for option in (one for each in commands for one in each.params):
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert max(option.opts, key=len) in text


@pytest.mark.parametrize("group", ["store", "alerts", "grafana"])
def test_a_group_lists_its_commands_with_whole_sentences(group: str) -> None:
    _, text = run(group, "--help")
    listed = text.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


def test_the_help_of_export_has_the_order_of_sources() -> None:
    _, text = run("export", "--help")
    flat = " ".join(text.split())
    order = [
        "the server on the default folder", DEFAULT_COLLECTOR, "the default folder itself",
    ]  # fmt: skip
    places = [flat.index(words) for words in ("With none of these", *order)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], ["nonsense", "No such command"]),
        (["serve", "--ui-port", "70000"], ["70000", "65535"]),
        (
            ["serve", "--ui-port", "abc"],
            ["--ui-port", "'abc' is no port", "1 to 65535", "0 for any"],
        ),
        (["serve", "--ui-port", "1_0"], ["'1_0' is no port"]),
        (["serve", "--otlp-http-port", "٣"], ["'٣' is no port"]),
        (["serve", "--otlp-http-port", "9" * 5000], ["is no port"]),
        (["serve", "--otlp-http-port", "000000099999"], ["is no port"]),
        (["demo", "--metrics-port", "-1"], ["--metrics-port", "'-1' is no port"]),
        (["demo", "--ui-port", "9", "--metrics-port", "9"], ["--metrics-port", "differ"]),
        (["serve", "--ui-port", "9", "--otlp-http-port", "9"], ["--ui-port", "differ"]),
        (["serve", "--retention", "soon"], ["'soon'", "30d"]),
        (["serve", "--retention", "0d"], ["'0d'", "above 0"]),
        (["serve", "--webhook", "ftp://x"], ["'ftp://x'", "http://"]),
        (["serve", "--no-alerts", "--webhook", "http://x"], ["--no-alerts", "--webhook"]),
        (["serve", "--alert-time-scale", "0"], ["--alert-time-scale", "0.001"]),
        (["serve", "--host", "0.0.0.0"], ["--insecure", "authentication", "127.0.0.1"]),
        (["serve", "--host", "no.such.host.invalid", "--insecure"], ["no.such.host.invalid"]),
        (["export", "nonsense"], ["nonsense", "transitions"]),
        (["export", "calls", "--since", "yesterday"], ["'yesterday'", "1h"]),
        (["export", "calls", "--format", "xml"], ["xml", "parquet"]),
        (["export", "calls", "--collector", "here"], ["'here'", "http://127.0.0.1:4318"]),
        (["export", "calls", "--collector", "http://h", "--data", "d"], ["not several"]),
        (["export", "calls", "--store", "clickhouse://h", "--data", "d"], ["not several"]),
        (["serve", "--store", "http://u:secret@h/"], ["--store", "names no host", "clickhouse://"]),
        (["demo", "--speed", "0"], ["--speed", "0.1"]),
        (["demo", "--scenario", "/no/such/file"], ["/no/such/file"]),
    ],
)
def test_a_wrong_argument_is_named_with_what_would_be_right(
    arguments: list[str], words: list[str]
) -> None:
    code, text = run(*arguments)
    assert code == Exit.USAGE
    flat = " ".join(text.split())
    for word in words:
        assert word in flat
    assert "Traceback" not in text


@pytest.mark.parametrize("command", [["export", "calls"], ["import", __file__]], ids=lambda c: c[0])
def test_a_database_of_the_environment_counts_where_no_other_place_is_named(
    command: list[str], monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setenv(ENV_STORE, f"clickhouse://127.0.0.1:{unused_tcp_port}")
    code, text = run(*command)
    assert code == Exit.FAILED
    assert f"clickhouse://default@127.0.0.1:{unused_tcp_port}/fuseboard" in text
    code, text = run(*command, "--collector", f"http://127.0.0.1:{unused_tcp_port}")
    assert code == Exit.FAILED
    assert f"no fuseboard answers at http://127.0.0.1:{unused_tcp_port}" in text
