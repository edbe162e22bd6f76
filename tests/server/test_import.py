"""`fuseboard import`: into a folder at rest, through its server, and again without doubling."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.processes import export_records

from fuseboard_collector.store import open_store
from fuseboard_server import importing
from fuseboard_server.exits import Exit
from fuseboard_server.importing import IntoStore, import_file

Cli = Callable[..., subprocess.CompletedProcess[str]]
DATA = Path(__file__).parents[1] / "data" / "otlp"
OK = DATA / "langchain-otelgenai.ok.pb"
RAISES = DATA / "agno-otelgenai.raises.pb"


def recorded(path: Path) -> list[Any]:
    request = ExportTraceServiceRequest.FromString(path.read_bytes())
    return [
        span for group in request.resource_spans for scope in group.scope_spans
        for span in scope.spans
    ]  # fmt: skip


def spans_of(path: Path) -> int:
    return len(recorded(path))


def calls_of(path: Path) -> int:
    """Count the spans of tools; no call of these recordings has two."""
    return sum(
        any(
            (one.key, one.value.string_value) == ("gen_ai.operation.name", "execute_tool")
            for one in span.attributes
        )
        for span in recorded(path)
    )


def span(number: int, trace: str = "0af7651916cd43dd8448eb211c80319c") -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        "fuseboard.outcome": "ok",
    }  # fmt: skip
    return {
        "traceId": trace, "spanId": f"{number:016x}", "name": "execute_tool search",
        "startTimeUnixNano": str(1_796_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_796_000_000_000_000_000 + number + 1_000_000),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }  # fmt: skip


def document(*spans: dict[str, Any]) -> dict[str, Any]:
    scope = {"scope": {"name": "fuseboard"}, "spans": list(spans)}
    return {"resourceSpans": [{"scopeSpans": [scope]}]}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A collector's file of 40 calls in 4 requests, packed."""
    path = tmp_path / "traces.jsonl.gz"
    documents = [document(*(span(10 * i + j) for j in range(1, 11))) for i in range(4)]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, documents)).encode()))
    return path


@pytest.mark.e2e
def test_into_a_folder_at_rest_and_again(cli: Cli, tmp_path: Path, lines: Path) -> None:
    data = tmp_path / "data"
    done = cli("import", str(lines), str(OK), "--data", str(data))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{lines}: 40 spans", f"{OK}: {spans_of(OK)} spans",
    ]  # fmt: skip
    assert f"the folder {data}" in done.stderr
    calls = export_records("calls", "--data", str(data))
    assert len(calls) == 40 + calls_of(OK)
    again = cli("import", str(lines), str(OK), "--data", str(data))
    assert again.returncode == 0
    assert again.stdout.splitlines() == [
        f"{lines}: 40 spans; 40 of them were there already",
        f"{OK}: {spans_of(OK)} spans; {spans_of(OK)} of them were there already",
    ]
    assert export_records("calls", "--data", str(data)) == calls


@pytest.mark.e2e
def test_through_the_server_that_holds_the_folder_and_its_tokens(
    cli: Cli, start: Callable[..., Any], tmp_path: Path, lines: Path
) -> None:
    data = tmp_path / "data"
    tokens = {"FUSEBOARD_TOKEN": "s3nd", "FUSEBOARD_READ_TOKEN": "r3ad"}
    served = start(
        "serve", "--data", str(data), "--ui-port", "0", "--otlp-http-port", "0",
        "--otlp-grpc-port", "off", **tokens,
    )  # fmt: skip
    served.wait_for("Ctrl-C stops it.")
    done = cli("import", str(lines), str(RAISES), "--data", str(data), **tokens)
    assert done.returncode == 0, done.stderr
    assert f"{lines}: 40 spans" in done.stdout
    assert "the server at http://127.0.0.1:" in done.stderr
    again = cli("import", str(lines), "--data", str(data), **tokens)
    assert "40 of them were there already" in again.stdout
    for missing, word in (("FUSEBOARD_TOKEN", "--token"), ("FUSEBOARD_READ_TOKEN", "--read-token")):
        fresh = tmp_path / f"{missing}.json"
        fresh.write_text(json.dumps(document(span(999))))
        known = {name: value for name, value in tokens.items() if name != missing}
        refused = cli("import", str(fresh), "--data", str(data), **known)
        assert refused.returncode == Exit.FAILED
        assert word in refused.stderr
        assert "Traceback" not in refused.stderr
    assert served.end() == 0
    calls = export_records("calls", "--data", str(data))
    assert len(calls) == 40 + calls_of(RAISES)


@pytest.mark.e2e
def test_what_is_wrong_is_said_per_file_and_the_rest_is_imported(
    cli: Cli, tmp_path: Path, lines: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join([
        json.dumps(document(span(1), span(2, trace="00" * 16))), "{", json.dumps(document(span(3))),
    ]))  # fmt: skip
    nonsense = tmp_path / "nonsense.txt"
    nonsense.write_text("hello")
    data = tmp_path / "data"
    done = cli("import", str(bad), str(nonsense), str(lines), "--data", str(data))
    assert done.returncode == Exit.FAILED
    said = done.stdout.splitlines()
    assert said[0].startswith(f"{bad}: 3 spans; 2 rejected (")
    assert "1 × bad trace_id" in said[0]
    assert "1 × line 2 is no JSON object" in said[0]
    assert said[1] == (
        f"{nonsense}: nothing; then it failed: it is neither OTLP/JSON nor OTLP/protobuf"
    )
    assert said[2].startswith(f"{lines}: 40 spans")
    # The calls of the bad file are among those of the other one.
    assert len(export_records("calls", "--data", str(data))) == 40


def test_reasons_of_a_file_that_is_wrong_everywhere_are_few(tmp_path: Path) -> None:
    """Each line has words of its own; a report of millions would not fit into memory."""
    path = tmp_path / "bad.jsonl"
    path.write_text('{"x": 1}\n' * 5_000)
    store = open_store(tmp_path / "f.duckdb")
    report = import_file(path, IntoStore(store, "here"), lambda _: None)
    store.close()
    assert report.rejected.total() == 5_000
    assert len(report.rejected) == importing.MAX_REASONS + 1
    assert "4980 × other reasons" in report.words()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["FILES"]),
        (["no-such-file"], ["no-such-file"]),
        (["FILE", "--data", "x", "--collector", "http://127.0.0.1:1"], ["not several"]),
        (["FILE", "--collector", "http://127.0.0.1:1"], ["no fuseboard answers"]),
    ],
)
def test_wrong_use_is_explained(
    cli: Cli, lines: Path, arguments: list[str], words: list[str]
) -> None:
    done = cli("import", *(str(lines) if one == "FILE" else one for one in arguments))
    assert done.returncode in (Exit.USAGE, Exit.FAILED)
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_repeat_long_after_is_known_by_what_is_stored(tmp_path: Path, lines: Path) -> None:
    """The store itself remembers ten minutes only."""
    data = tmp_path / "f.duckdb"
    for expected in (0, 40):
        store = open_store(data, retention_days=None)
        store._writer._session._repeats._young.clear()  # type: ignore[union-attr]
        report = import_file(lines, IntoStore(store, "here"), lambda _: None)
        assert report.repeated == expected
        assert store.query("export_calls", {"since": None, "until": None}).num_rows == 40
        store.close()


def test_progress_is_told_in_bytes_of_the_file(tmp_path: Path, lines: Path) -> None:
    store = open_store(tmp_path / "f.duckdb", retention_days=None)
    seen: list[int] = []
    import_file(lines, IntoStore(store, "here"), seen.append)
    store.close()
    assert len(seen) == 4
    assert seen == sorted(seen)
    assert seen[-1] == lines.stat().st_size
