"""Servers run with jemalloc where it is installed; everything else is as it was."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.processes import Server

from fuseboard_server import allocator
from fuseboard_server.doctor import Grade, Setup, examine

VARIABLES = ("LD_PRELOAD", "_FUSEBOARD_BEGUN_AGAIN", "MALLOC_CONF")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux preloads it")


@pytest.fixture
def jemalloc() -> None:
    """Need the library: `make test` installs it when run as root."""
    if allocator.is_installed():
        return
    message = f"{allocator.LIBRARY} not found: apt-get install {allocator.PACKAGE}"
    if os.environ.get("CI") == "true":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Environments in which the program was begun again; it was not, really."""
    for name in (*VARIABLES, "FUSEBOARD_ALLOCATOR"):
        monkeypatch.delenv(name, raising=False)
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda *args: environments.append(args[2]))
    return environments


def libraries(server: Server) -> str:
    assert server.process is not None
    return Path(f"/proc/{server.process.pid}/maps").read_text()


@pytest.mark.usefixtures("jemalloc")
def test_a_server_runs_with_jemalloc_and_answers(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", tmp_path / "log")
    try:
        server.start()
        assert allocator.LIBRARY in libraries(server)
        assert server.stop() == 0, "a signal reaches the program that was begun again"
    finally:
        server.end()


@pytest.mark.usefixtures("jemalloc")
def test_the_operator_can_keep_the_systems_allocator(tmp_path: Path) -> None:
    environment = {"FUSEBOARD_ALLOCATOR": "system"}
    server = Server(tmp_path / "data", tmp_path / "log", environment=environment)
    try:
        server.start()
        assert "jemalloc" not in libraries(server)
    finally:
        server.end()


@pytest.mark.usefixtures("jemalloc", "begun")
def test_the_program_begins_again_with_all_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda _path, argv, _env: called.append(argv))
    monkeypatch.setattr(sys, "orig_argv", ["python3", "-X", "dev", "-m", "fuseboard_server", "x"])
    allocator.prefer()
    assert called == [[sys.executable, "-X", "dev", "-m", "fuseboard_server", "x"]]


@pytest.mark.usefixtures("jemalloc")
def test_what_the_server_starts_does_not_inherit_it(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    allocator.prefer()
    (environment,) = begun
    assert environment["LD_PRELOAD"] == allocator.LIBRARY
    for name in VARIABLES:
        monkeypatch.setenv(name, environment[name])
    allocator.prefer()
    assert len(begun) == 1, "once is enough"
    assert not set(VARIABLES) & set(os.environ)


@pytest.mark.usefixtures("jemalloc")
def test_an_operators_own_options_are_kept(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_CONF", "stats_print:true")
    allocator.prefer()
    (environment,) = begun
    assert environment["MALLOC_CONF"] == "stats_print:true"


@pytest.mark.usefixtures("jemalloc")
def test_a_preload_of_the_operators_own_is_left_alone(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "libtcmalloc.so.4")
    allocator.prefer()
    assert begun == []
    assert os.environ["LD_PRELOAD"] == "libtcmalloc.so.4"


@pytest.mark.usefixtures("jemalloc")
def test_where_programs_may_not_be_begun_the_server_runs_without(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(os.environ)

    def refused(*arguments: Any) -> None:
        begun.append(arguments[2])
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "execve", refused)
    allocator.prefer()
    assert len(begun) == 1, "it was tried"
    assert dict(os.environ) == before


def test_without_the_library_nothing_happens(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    monkeypatch.setattr(allocator, "_folders", lambda: [tmp_path])
    allocator.prefer()
    assert begun == []
    seen = {finding.subject: finding for finding in examine(Setup(tmp_path, "http://127.0.0.1:9"))}
    assert seen["allocator"].grade is Grade.OK
    assert allocator.PACKAGE in seen["allocator"].seen


@pytest.mark.usefixtures("jemalloc")
def test_a_program_whose_preload_was_taken_away_is_not_begun_for_ever(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setuid Python and some sandboxes drop LD_PRELOAD."""
    allocator.prefer()
    (environment,) = begun
    for name in set(VARIABLES) - {"LD_PRELOAD"}:
        monkeypatch.setenv(name, environment[name])
    allocator.prefer()
    assert len(begun) == 1


def test_where_nothing_can_be_looked_up_nothing_happens(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("ctypes.util.find_library", fails)
    monkeypatch.setattr(allocator, "_folders", list)
    allocator.prefer()
    assert begun == []


def test_the_library_is_found_without_ldconfig(
    begun: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    monkeypatch.setattr(allocator, "_folders", lambda: [tmp_path / "none", tmp_path])
    assert not allocator.is_installed()
    (tmp_path / allocator.LIBRARY).touch()
    allocator.prefer()
    assert [each["LD_PRELOAD"] for each in begun] == [allocator.LIBRARY]


def test_a_value_that_means_nothing_is_said(
    begun: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(allocator, "is_installed", lambda: True)
    monkeypatch.setenv("FUSEBOARD_ALLOCATOR", "sytem")
    allocator.prefer()
    assert len(begun) == 1
    assert "FUSEBOARD_ALLOCATOR='sytem' means nothing" in capsys.readouterr().err
    found = [f for f in examine(Setup(tmp_path, "http://127.0.0.1:9")) if f.subject == "allocator"]
    assert [f.grade for f in found] == [Grade.WARN, Grade.OK]


@pytest.mark.parametrize("value", ["", "system"])
def test_doctor_tells_the_running_servers_allocator_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    if not value and not allocator.is_installed():
        pytest.skip("needs jemalloc")
    server = Server(tmp_path / "data", tmp_path / "log", environment={"FUSEBOARD_ALLOCATOR": value})
    monkeypatch.setenv("FUSEBOARD_ALLOCATOR", "" if value else "system")
    try:
        server.start()
        setup = Setup(tmp_path / "data", server.otlp_url)
        seen = {finding.subject: finding.seen for finding in examine(setup)}["allocator"]
    finally:
        server.end()
    assert seen.startswith("the C library's" if value else allocator.LIBRARY)
    assert "running server" in seen


def test_doctor_says_that_a_preload_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FUSEBOARD_ALLOCATOR", raising=False)
    monkeypatch.setenv("LD_PRELOAD", "libtcmalloc.so.4")
    found = {f.subject: f.seen for f in examine(Setup(tmp_path, "http://127.0.0.1:9"))}
    assert "LD_PRELOAD='libtcmalloc.so.4' is kept" in found["allocator"]
