from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from fuseboard_server import doctor, presence
from fuseboard_server.doctor import Finding, Grade, Setup, examine
from fuseboard_server.probing import Kind, Reply
from fuseboard_server.settings import DATA_FILE, DEFAULT_COLLECTOR, SERVER_VARIABLES
from fuseboard_server.sockets import bind, port_of

NOWHERE = "http://127.0.0.1:9"


def look(data: Path, collector: str = NOWHERE) -> dict[str, Finding]:
    return {finding.subject: finding for finding in examine(Setup(data, collector))}


def test_a_fresh_set_up_has_no_failure_and_every_warning_has_advice(tmp_path: Path) -> None:
    found = look(tmp_path / "new")
    assert not [f for f in found.values() if f.grade is Grade.FAIL]
    assert all(bool(f.advice) is (f.grade is not Grade.OK) for f in found.values())
    assert set(found) >= {
        "version", "packages", "configuration", "hash key", "data folder", "data file", "collector",
    }  # fmt: skip
    assert not (tmp_path / "new").exists(), "looking makes nothing"


def test_the_published_hash_key_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEBOARD_HASH_KEY", raising=False)
    finding = look(tmp_path)["hash key"]
    assert finding.grade is Grade.WARN
    assert "FUSEBOARD_HASH_KEY" in finding.advice
    monkeypatch.setenv("FUSEBOARD_HASH_KEY", "s3cret-of-ours")
    finding = look(tmp_path)["hash key"]
    assert finding.grade is Grade.OK
    assert "s3cret" not in finding.seen


def test_a_misspelt_variable_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEBOARD_ENDPIONT", "x")
    finding = look(tmp_path)["configuration"]
    assert finding.grade is Grade.WARN
    assert "FUSEBOARD_ENDPIONT" in finding.seen
    assert "FUSEBOARD_ENDPOINT" in finding.advice


def test_the_servers_variables_are_known_and_tokens_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SERVER_VARIABLES:
        monkeypatch.setenv(name, "s3cret")
    finding = look(tmp_path)["configuration"]
    assert finding.grade is Grade.OK
    assert "FUSEBOARD_READ_TOKEN" in finding.seen
    assert "s3cret" not in finding.seen


def test_an_environment_in_which_no_agent_starts_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "agents" not in look(tmp_path)
    monkeypatch.setenv("FUSEBOARD_ENDPOINT", "localhost:4318")
    finding = look(tmp_path)["agents"]
    assert finding.grade is Grade.FAIL
    assert "localhost:4318" in finding.seen
    assert doctor.default_collector(tmp_path) == DEFAULT_COLLECTOR


def test_the_file_of_policies_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "policies" not in look(tmp_path)
    file = tmp_path / "policies.toml"
    monkeypatch.setenv("FUSEBOARD_CONFIG", str(file))
    file.write_text("[tools.search]\nfallback = 'a.module.of.the.agent:search'\ntimeout = 5\n")
    finding = look(tmp_path)["policies"]
    assert (finding.grade, finding.seen) == (
        Grade.OK,
        f"{file}: defaults for all tools: none; tools: search",
    )
    file.write_text("[tools.search]\ntimeout = -5\n")
    finding = look(tmp_path)["policies"]
    assert finding.grade is Grade.FAIL
    assert "line 2: [tools.search] timeout = -5: must be" in finding.seen


def test_telemetry_that_is_turned_off_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert "OTEL_SDK_DISABLED" in look(tmp_path)["agents"].seen


def test_the_collector_that_agents_would_send_to_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor.default_collector(tmp_path) == DEFAULT_COLLECTOR
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:5")
    assert doctor.default_collector(tmp_path) == "http://127.0.0.1:5"
    monkeypatch.setenv("FUSEBOARD_ENDPOINT", "http://127.0.0.1:6")
    assert doctor.default_collector(tmp_path) == "http://127.0.0.1:6"


def test_the_servers_token_goes_to_the_server_on_the_folder_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, str]] = []

    def probe(_: str, headers: Iterable[tuple[str, str]] = ()) -> Reply:
        asked.append(dict(headers))
        return Reply(Kind.OTLP)

    here = "http://127.0.0.1:7"
    owner = presence.Presence(os.getpid(), dashboard="http://127.0.0.1:8", collector=here)
    monkeypatch.setattr(presence, "running", lambda _: owner)
    monkeypatch.setattr(doctor, "probe", probe)
    monkeypatch.setenv("FUSEBOARD_TOKEN", "s3cret")
    look(tmp_path, here)
    look(tmp_path, "http://collector.example:4318")
    assert asked == [{"authorization": "Bearer s3cret"}, {}]


def test_a_file_that_is_no_data_file_fails(tmp_path: Path) -> None:
    (tmp_path / "fuseboard.duckdb").write_bytes(b"this is no database" * 1000)
    finding = look(tmp_path)["data file"]
    assert finding.grade is Grade.FAIL
    assert "--data" in finding.seen


def test_a_folder_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    finding = look(tmp_path / "data")["data folder"]
    assert finding.grade is Grade.FAIL
    assert "--data" in finding.advice


def test_a_port_in_use_names_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bind("127.0.0.1", 0, "") as holder:
        holder.listen()
        port = port_of(holder)
        monkeypatch.setattr(doctor, "DEFAULT_UI_PORT", port)
        finding = look(tmp_path)[f"port {port}"]
    assert finding.grade is Grade.WARN
    assert "--ui-port" in finding.advice


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "requires", lambda _: ["no-such-package>=1", "click<0.1"])
    finding = look(tmp_path)["packages"]
    assert finding.grade is Grade.FAIL
    assert "no-such-package is missing" in finding.seen
    assert "click" in finding.seen
    assert "pip install" in finding.advice


def test_a_check_that_breaks_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Setup) -> list[Finding]:
        raise RuntimeError("oh")

    monkeypatch.setattr(doctor, "CHECKS", (broken, doctor._versions))
    found = look(tmp_path)
    assert found["broken"].grade is Grade.FAIL
    assert found["version"].grade is Grade.OK


def test_a_check_that_misses_a_package_is_no_fault_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fuseboard.duckdb").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "fuseboard_collector.store", None)
    finding = look(tmp_path)["data_file"]
    assert finding.grade is Grade.FAIL
    assert "fuseboard_collector.store" in finding.seen
    assert "report" not in finding.advice


def store_findings(folder: Path) -> dict[str, str]:
    """Return what is said of the data file, by grade and subject."""
    setup = Setup(folder, "http://127.0.0.1:9")
    return {
        f"{found.grade} {found.subject}": f"{found.seen} → {found.advice}"
        for found in doctor._data_file(setup)
    }


def test_a_file_at_rest_tells_its_version_and_what_waits(tmp_path: Path) -> None:
    from fuseboard_collector.store import open_store

    store = open_store(tmp_path / DATA_FILE)
    store._command(
        lambda connection: connection.execute("INSERT INTO staged_traces VALUES ('a', now())")
    )
    store.close()
    said = store_findings(tmp_path)
    assert "readable, schema version" in said["ok data file"]
    assert "1 traces of other instrumentation wait" in said["ok store"]


def test_a_file_known_to_be_damaged_fails(tmp_path: Path) -> None:
    from fuseboard_collector.store import open_store
    from fuseboard_collector.store.health import Health

    open_store(tmp_path / DATA_FILE).close()
    Health(tmp_path / DATA_FILE).damaged("Corrupt database file: block 7")
    said = store_findings(tmp_path)
    assert (
        "takes no data: the file is damaged: Corrupt database file: block 7" in said["fail store"]
    )


@pytest.mark.parametrize(
    ("told", "grade", "words"),
    [
        ({}, Grade.OK, "at http://127.0.0.1:8501, for this machine, no login"),
        ({"login": "OpenID Connect at id.example"}, Grade.OK, "login: OpenID Connect at id"),
        ({"public": "https://ops.example/f"}, Grade.WARN, "at https://ops.example/f, without"),
        ({"dashboard": "http://0.0.0.0:8501"}, Grade.WARN, "whoever reaches it sees everything"),
        ({"dashboard": "http://0.0.0.0:8501", "login": "header X-User"}, Grade.OK, "X-User"),
    ],
    ids=str,
)
def test_who_gets_to_see_the_dashboard_is_said(
    told: dict[str, str], grade: Grade, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {"dashboard": "http://127.0.0.1:8501", "collector": NOWHERE, **told}
    presence.announce(tmp_path, presence.Presence(os.getpid(), **here))
    monkeypatch.setattr(presence, "answers", lambda url: True)
    finding = look(tmp_path)["dashboard"]
    assert finding.grade is grade
    assert words in finding.seen
    assert bool(finding.advice) is (grade is Grade.WARN)


def test_without_a_server_nothing_is_said_of_a_dashboard(tmp_path: Path) -> None:
    assert "dashboard" not in look(tmp_path)
