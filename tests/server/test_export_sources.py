"""`fuseboard export` gives the same records from a running server and from a folder at rest."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fuseboard_server.exits import Exit
from fuseboard_server.settings import DATA_FILE

pytestmark = pytest.mark.e2e

Cli = Callable[..., subprocess.CompletedProcess[str]]
CALL_COLUMNS = (
    *("trace_id", "span_id", "start", "end", "received_at", "duration_seconds"),
    *("attempt_seconds", "tool", "server", "region", "environment", "service", "instance"),
    *("agent", "session", "framework", "outcome", "error_class", "error_type", "cause_type"),
    *("classifier_id", "retry_strategy", "http_status", "error_message", "retryable", "origin"),
    *("attempts", "backoff_seconds", "layer", "breaker_state", "result_source"),
    *("result_age_seconds", "confidence", "fallback_tool", "partial_failures", "cost"),
    *("args_hash", "upstream", "call_id", "weight"),
)


def post_calls(otlp_url: str, number: int, *, age_seconds: float = 0.0) -> None:
    """Send calls as the shim does, as OTLP/JSON; they can be read at once."""
    end = time.time_ns() - int(age_seconds * 1e9)
    spans = [
        {
            "traceId": f"{index + 1:032x}",
            "spanId": f"{index + 1 + int(age_seconds):016x}",
            "name": "execute_tool search",
            "kind": 1,
            "startTimeUnixNano": str(end - 2_000_000),
            "endTimeUnixNano": str(end + index * 1000),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "fuseboard.outcome", "value": {"stringValue": "ok"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": f'search, "{index}"\nö'}},
            ],
        }
        for index in range(number)
    ]
    service = {"key": "service.name", "value": {"stringValue": "someone"}}
    scope = {"scope": {"name": "fuseboard"}, "spans": spans}
    body = {"resourceSpans": [{"resource": {"attributes": [service]}, "scopeSpans": [scope]}]}
    request = urllib.request.Request(
        f"{otlp_url}/v1/traces",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def export(cli: Cli, *arguments: str) -> str:
    done = cli("export", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_running_and_at_rest_are_equal_in_every_format(
    serve: Callable[..., Any], cli: Cli, tmp_path: Path
) -> None:
    served = serve()
    post_calls(served.otlp_url, 25)
    collector, folder = ("--collector", served.otlp_url), ("--data", str(served.data))
    by_url = export(cli, "calls", *collector)
    assert by_url == export(cli, "calls", *folder), "the folder's owner is asked"
    as_csv = export(cli, "calls", *collector, "--format", "csv")
    assert served.running.end() == 0
    assert export(cli, "calls", *folder) == by_url
    assert export(cli, "calls", *folder, "--format", "csv") == as_csv

    rows = [json.loads(line) for line in by_url.splitlines()]
    assert len(rows) == 25
    assert list(rows[0]) == list(CALL_COLUMNS)
    assert rows[3]["tool"] == 'search, "3"\nö'
    assert rows[3]["service"] == "someone"
    assert rows[3]["error_class"] is None
    assert rows[3]["end"].endswith("Z")
    assert len(rows[3]["end"]) == len("2027-01-01T00:00:00.000000Z")

    read = list(csv.DictReader(io.StringIO(as_csv, newline="")))
    assert [row["tool"] for row in read] == [row["tool"] for row in rows]
    assert read[0]["error_class"] == ""
    output = tmp_path / "calls.parquet"
    export(cli, "calls", *folder, "--format", "parquet", "--output", str(output))
    table = pq.read_table(output)
    assert table.column_names == list(CALL_COLUMNS)
    assert table.column("span_id").to_pylist() == [row["span_id"] for row in rows]


def test_since_leaves_out_what_ended_before(serve: Callable[..., Any], cli: Cli) -> None:
    served = serve()
    post_calls(served.otlp_url, 3, age_seconds=7200)
    post_calls(served.otlp_url, 2)
    options = ("--collector", served.otlp_url)
    assert len(export(cli, "calls", *options).splitlines()) == 5
    assert len(export(cli, "calls", *options, "--since", "1h").splitlines()) == 2
    assert len(export(cli, "calls", *options, "--since", "3h").splitlines()) == 5


def test_nothing_to_export_is_no_error(serve: Callable[..., Any], cli: Cli) -> None:
    served = serve()
    for kind in ("calls", "attempts", "transitions", "alerts"):
        assert export(cli, kind, "--data", str(served.data)) == ""
    header = export(cli, "attempts", "--data", str(served.data), "--format", "csv")
    assert header.startswith("trace_id,call_span_id,span_id,number,start")


def test_old_data_survive_an_export_at_rest(serve: Callable[..., Any], cli: Cli) -> None:
    served = serve("--retention", "forever")
    post_calls(served.otlp_url, 4, age_seconds=90 * 86400)
    assert served.running.end() == 0
    for _ in range(2):
        assert len(export(cli, "calls", "--data", str(served.data)).splitlines()) == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_neither_export_nor_doctor_touches_a_folder_at_rest(
    serve: Callable[..., Any], cli: Cli, number: signal.Signals
) -> None:
    served = serve()
    post_calls(served.otlp_url, 7)
    served.running.end(number)

    def traces() -> dict[str, tuple[bytes, int, int]]:
        files = {item.name: item for item in served.data.iterdir()}
        assert (f"{DATA_FILE}.wal" in files) is (number == signal.SIGKILL)
        states = {name: item.stat() for name, item in {**files, ".": served.data}.items()}
        return {
            name: (files[name].read_bytes() if name in files else b"", s.st_mtime_ns, s.st_ctime_ns)
            for name, s in states.items()
        }

    before = traces()
    assert len(export(cli, "calls", "--data", str(served.data)).splitlines()) == 7
    assert traces() == before
    assert cli("doctor", "--data", str(served.data)).returncode == 0
    assert traces() == before


@pytest.mark.parametrize("kind", ["file", "standard output"])
def test_a_full_disk_is_one_clear_message(
    serve: Callable[..., Any], tmp_path: Path, kind: str
) -> None:
    served = serve()
    post_calls(served.otlp_url, 3)
    target = "--output /dev/full" if kind == "file" else "> /dev/full"
    done = subprocess.run(
        f"{sys.executable} -m fuseboard_server export calls --data {served.data} {target}",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == Exit.FAILED
    assert "No space left" in done.stderr
    assert "incomplete" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    "command", [("export", "calls"), ("alerts", "render"), ("grafana", "render")]
)
def test_a_place_that_can_not_be_written_to_is_named(
    serve: Callable[..., Any], cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    served = serve()
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "below" / "it"
    source = ("--data", str(served.data)) if command[0] == "export" else ()
    done = cli(*command, *source, "--output", str(target))
    assert done.returncode == Exit.FAILED
    assert str(target) in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_reader_that_hangs_up_early_is_no_error(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    served = serve()
    post_calls(served.otlp_url, 3000)
    done = subprocess.run(
        f"{sys.executable} -m fuseboard_server export calls --collector {served.otlp_url}"
        " | head -n 1",
        shell=True, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == f"calls, read from the server at {served.otlp_url}\n"


def test_which_source_was_read_is_said_on_standard_error(
    serve: Callable[..., Any], cli: Cli, tmp_path: Path
) -> None:
    served = serve()
    post_calls(served.otlp_url, 2)
    output = tmp_path / "calls.jsonl"
    from_server = f"read from the server at {served.otlp_url}\n"
    done = cli("export", "calls", FUSEBOARD_DATA=str(served.data))
    assert done.stderr == f"calls, {from_server}"
    done = cli("export", "calls", "--data", str(served.data), "--output", str(output))
    assert done.stderr == f"2 calls written to {output}, {from_server}"
    assert served.running.end() == 0
    done = cli("export", "calls", "--data", str(served.data))
    assert done.stderr == f"calls, read from the folder {served.data}\n"
    assert len(done.stdout.splitlines()) == 2


def test_no_server_and_no_data_say_what_to_name(cli: Cli, tmp_path: Path) -> None:
    done = cli("export", "calls", "--data", str(tmp_path / "none"))
    assert done.returncode == Exit.DATA_UNUSABLE
    assert "--data DIR" in done.stderr
    assert "--collector URL" in done.stderr
    done = cli("export", "calls", "--collector", "http://127.0.0.1:9")
    assert done.returncode == Exit.FAILED
    assert "fuseboard serve" in done.stderr
    assert not (tmp_path / "none").exists()


def test_a_server_that_is_none_of_ours_is_said(cli: Cli, serve: Callable[..., Any]) -> None:
    served = serve()
    done = cli("export", "calls", "--collector", served.ui_url)
    assert done.returncode == Exit.FAILED
    assert "Traceback" not in done.stderr
    assert served.otlp_url in done.stderr, "the dashboard's port says where the collector is"


def test_doctor_finds_the_running_server(serve: Callable[..., Any], cli: Cli) -> None:
    served = serve()
    done = cli("doctor", "--data", str(served.data))
    assert done.returncode == 0, done.stdout
    assert f"answers at {served.otlp_url}" in done.stdout
    assert f"process id {served.running.pid}" in done.stdout


def test_doctor_fails_on_the_dashboards_port(serve: Callable[..., Any], cli: Cli) -> None:
    served = serve()
    done = cli("doctor", "--data", str(served.data), "--collector", served.ui_url)
    assert done.returncode == Exit.FAILED
    line = next(line for line in done.stdout.splitlines() if "collector:" in line)
    assert line.startswith("fail")
    assert "the dashboard's port" in line
    assert served.otlp_url in line, "and where OTLP is"
