"""``init(config=…)``, ``FUSEBOARD_CONFIG`` and ``reload``: which file is read, and when."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fuseboard
from fuseboard import ConfigurationError, Policy, Retry, setup
from fuseboard.calls.switching import SWITCHES
from fuseboard.runtime import RUNTIME

ATTEMPTS = "[tools.search.retry]\nattempts = {}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "policies.toml"
    path.write_text(ATTEMPTS.format(2))
    return path


def attempts_of(name: str = "search") -> int | None:
    (tool,) = SWITCHES.named(name, "test")
    return tool.policy.retry.attempts if tool.policy and tool.policy.retry else None


def search(**options: Any) -> Callable[[str], int]:
    return fuseboard.wrap(len, name="search", **options)


def test_tools_made_before_and_after_init_get_their_policies(start: Any, path: Path) -> None:
    path.write_text(ATTEMPTS.format(2) + "[tools.late.retry]\nattempts = 4")
    early = search()
    start(config=path)
    late = fuseboard.wrap(len, name="late", policy=Policy(retry=Retry(attempts=9)))
    assert attempts_of() == 2
    assert attempts_of("late") == 4
    assert early("a") == late("a") == 1


def test_the_variable_names_the_file_and_the_argument_wins(
    start: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.toml"
    other.write_text(ATTEMPTS.format(7))
    monkeypatch.setenv("FUSEBOARD_CONFIG", str(other))
    kept = search()
    start()
    assert attempts_of() == 7
    setup.shutdown(0.0)
    start(config=str(path))
    assert attempts_of() == 2
    assert kept("a") == 1


def test_a_file_in_the_working_directory_is_not_read_unasked(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "fuseboard.toml").write_text(ATTEMPTS.format(5))
    monkeypatch.chdir(tmp_path)
    kept = search()
    start()
    assert attempts_of() is None
    assert "fuseboard.toml in the working directory, which is not read unasked" in caplog.text
    setup.shutdown(0.0)
    start(config="fuseboard.toml")
    assert attempts_of() == 5
    monkeypatch.chdir("/")
    (tmp_path / "fuseboard.toml").write_text(ATTEMPTS.format(6))
    assert fuseboard.reload() == ["search"]
    assert attempts_of() == 6
    assert kept("a") == 1


def test_what_was_read_is_in_the_log(
    start: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = search()
    with caplog.at_level(logging.INFO, "fuseboard"):
        start(config=path)
    assert f"policies were read from {path}" in caplog.text
    assert "tools: search); changed: search" in caplog.text
    assert kept("a") == 1


@pytest.mark.parametrize(
    ("config", "words"),
    [(3, "config=3 is not legal"), ("", "config='' is not legal"), ("/no/file", "/no/file")],
)
def test_an_illegal_option_is_refused(start: Any, config: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        start(config=config)


def test_an_init_that_fails_leaves_policies_alone(start: Any, path: Path) -> None:
    kept = search(policy=Policy(retry=Retry(attempts=9)))
    path.write_text(ATTEMPTS.format(0))
    with pytest.raises(ConfigurationError, match="line 2"):
        start(config=path)
    assert setup._STATE.assembly is None
    path.write_text(ATTEMPTS.format(2))
    with pytest.raises(ConfigurationError):
        start(config=path, metrics_port=-1)
    assert attempts_of() == 9
    assert kept("a") == 1


def test_policies_hold_where_telemetry_is_off(
    start: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    kept = search()
    start(config=path)
    assert attempts_of() == 2
    assert kept("a") == 1


def test_an_init_without_a_file_forgets_the_file_of_an_earlier_one(start: Any, path: Path) -> None:
    kept = search()
    start(config=path)
    setup.shutdown(0.0)
    start()
    assert attempts_of() is None
    with pytest.raises(ConfigurationError, match="there is no file to read"):
        fuseboard.reload()
    assert kept("a") == 1


def test_reload_takes_effect_as_a_whole_or_not_at_all(start: Any, path: Path) -> None:
    def stream() -> Iterator[int]:
        yield 1

    tools = search(), fuseboard.tool(stream)
    start(config=path)
    for wrong in (
        "[tools.search.retry]\nattempts = 3\n[tools.stream]\ntimeout = 1\n",
        "[tools.search.retry]\nattempts = 3\n[tools.absent.retry]\nattempts = 0\n",
        "[tools.search.retry]\nattempts = 3\n[tools",
    ):
        path.write_text(wrong)
        with pytest.raises(ConfigurationError, match=str(path)):
            fuseboard.reload()
        assert attempts_of() == 2
    path.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        fuseboard.reload()
    assert attempts_of() == 2
    path.write_text(ATTEMPTS.format(3))
    assert fuseboard.reload() == ["search"]
    assert fuseboard.reload() == []
    assert attempts_of() == 3
    assert list(tools[1]()) == [1]


def test_reload_has_the_last_word_over_configure(
    start: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = search()
    start(config=path)
    fuseboard.configure("search", Policy(retry=Retry(attempts=50)))
    assert attempts_of() == 50
    fuseboard.configure("search")
    assert attempts_of() == 2, "left out, it is what the file declares"
    fuseboard.configure("search", None)
    assert fuseboard.reload() == ["search"]
    assert attempts_of() == 2
    assert "what fuseboard.configure gave search no longer holds" in caplog.text
    assert kept("a") == 1


def test_a_default_that_a_tool_cannot_have_is_left_out_with_a_word(
    start: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text("[defaults]\ntimeout = 5\n[defaults.retry]\nattempts = 2")

    @fuseboard.tool
    def stream() -> Iterator[int]:
        yield 1

    kept = search()
    start(config=path)
    assert attempts_of("stream") == attempts_of() == 2
    (of_stream,) = SWITCHES.named("stream", "test")
    assert of_stream.policy == Policy(retry=Retry(attempts=2))
    assert caplog.text.count("tool 'stream' does without the default 'timeout'") == 1
    assert list(stream()) == [1]
    assert kept("a") == 1


def test_defaults_that_need_each_other_come_together(start: Any, path: Path) -> None:
    path.write_text("[defaults.cache]\nttl = 5\n[defaults]\neffects = 'none'")
    kept = search()
    start(config=path)
    (tool,) = SWITCHES.named("search", "test")
    assert tool.policy is not None
    assert tool.policy.cache is not None
    assert kept("a") == 1


def test_the_first_call_tells_of_tools_that_nobody_made(
    start: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text("[tools.serch]\ntimeout = 1\n[tools.later]\ntimeout = 1")
    kept = search()
    start(config=path)
    later = fuseboard.wrap(len, name="later")
    assert "serch" not in caplog.text
    assert kept("a") == later("a") == 1
    said = [r.getMessage() for r in caplog.records if "no such tool" in r.getMessage()]
    assert len(said) == 1
    assert "for 'serch', but no such tool has been decorated so far; did you mean 'search'?" in said[0]  # fmt: skip # noqa: E501


def test_threads_may_reload_and_make_tools_at_once(start: Any, path: Path) -> None:
    start(config=path)
    kept: list[Any] = []
    stop = threading.Event()

    def make() -> None:
        while not stop.is_set() and len(kept) < 2000:
            kept.append(search())

    makers = [threading.Thread(target=make) for _ in range(3)]
    [maker.start() for maker in makers]
    for number in range(40):
        path.write_text(ATTEMPTS.format(2 + number % 2))
        fuseboard.reload()
    stop.set()
    [maker.join(20) for maker in makers]
    assert {tool.policy for tool in SWITCHES.named("search", "test")} == {
        Policy(retry=Retry(attempts=3))
    }
    assert RUNTIME.tools()


def test_a_module_that_makes_tools_may_be_named(run_script: Any, tmp_path: Path) -> None:
    (tmp_path / "spare.py").write_text(
        "import fuseboard\n@fuseboard.tool\ndef spare(n):\n    return f'spare {n}'\n"
    )
    (tmp_path / "f.toml").write_text("[tools.search]\nfallback = 'spare:spare'\n")
    done: subprocess.CompletedProcess[str] = run_script(f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import fuseboard
@fuseboard.tool
def search(n):
    raise ConnectionResetError
fuseboard.init(config={str(tmp_path / "f.toml")!r}, endpoint="http://127.0.0.1:9")
print(search(3))
""")
    assert done.stdout.strip() == "spare 3", done.stderr
