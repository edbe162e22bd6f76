"""Files as collectors and exporters write them, read back request by request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from fuseboard import conventions as c
from fuseboard_collector.receiver import otlp_json
from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.files import FileError, Found, requests
from fuseboard_collector.receiver.intake import MAX_UNPACKED, Signal
from fuseboard_collector.receiver.otlp_protobuf import decode_traces

SEEDS = sorted((Path(__file__).parents[1] / "data" / "otlp").glob("*.pb"))
Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


PACKED: dict[str, Pack] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip of two members": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "zstd": zstd,
    "zstd of two frames": lambda data: zstd(data[:9]) + zstd(data[9:]),
}


@pytest.fixture
def documents(otlp: Any) -> list[dict[str, Any]]:
    metrics = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m"}]}]}]}
    return [
        otlp.traces(otlp.span(span="b7ad6b7169203331")),
        otlp.logs(c.EVENT_HEARTBEAT, {}),
        metrics,
        otlp.traces(otlp.span(span="b7ad6b7169203332")),
    ]


SIGNALS = [Signal.TRACES, Signal.LOGS, Signal.METRICS, Signal.TRACES]


def sound(path: Path) -> list[Found]:
    found = list(requests(path))
    assert all(isinstance(one, Found) for one in found), found
    return [one for one in found if isinstance(one, Found)]


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize(
    "written", ["lines", "lines with gaps", "array", "indented array", "one by one"]
)
def test_json_of_any_shape_is_read(
    tmp_path: Path, documents: list[Any], written: str, packed: str
) -> None:
    text = {
        "lines": "\n".join(map(json.dumps, documents)),
        "lines with gaps": "\n\n".join(map(json.dumps, documents)) + "\n\n",
        "array": json.dumps(documents),
        "indented array": json.dumps(documents, indent=2),
        "one by one": "\n".join(json.dumps(one, indent=1) for one in documents),
    }[written]
    path = tmp_path / "file"
    path.write_bytes(PACKED[packed](text.encode()))
    found = sound(path)
    assert [one.signal for one in found] == SIGNALS
    assert [json.loads(one.body) for one in found] == documents
    assert {one.encoding for one in found} == {Encoding.JSON}
    assert found[-1].position == path.stat().st_size


def test_a_single_document_is_read(tmp_path: Path, documents: list[Any]) -> None:
    for number, document in enumerate(documents):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document, indent=4))
        (found,) = sound(path)
        assert (found.signal, json.loads(found.body)) == (SIGNALS[number], document)


def as_messages(otlp: Any, documents: list[Any]) -> list[bytes]:
    metrics = ExportMetricsServiceRequest()
    metric = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    metric.gauge.data_points.add(as_int=7)
    return [
        metrics.SerializeToString() if "resourceMetrics" in one else otlp.protobuf(one)
        for one in documents
    ]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


PREFIXES: dict[str, Callable[[int], bytes]] = {
    "four bytes": lambda size: size.to_bytes(4, "big"),
    "varint": varint,
}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_messages_after_their_sizes_are_read(
    tmp_path: Path, otlp: Any, documents: list[Any], prefix: str, packed: str
) -> None:
    messages = as_messages(otlp, documents)
    path = tmp_path / "file"
    path.write_bytes(PACKED[packed](b"".join(PREFIXES[prefix](len(one)) + one for one in messages)))
    found = sound(path)
    assert [(one.signal, one.body) for one in found] == list(zip(SIGNALS, messages, strict=True))


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_recorded_requests_are_told_to_be_traces(tmp_path: Path, path: Path) -> None:
    (found,) = sound(path)
    assert (found.signal, found.encoding) == (Signal.TRACES, Encoding.PROTOBUF)
    assert found.body == path.read_bytes()
    for prefix in PREFIXES.values():
        stream = tmp_path / "stream"
        stream.write_bytes((prefix(len(found.body)) + found.body) * 2)
        assert [one.body for one in sound(stream)] == [found.body] * 2


def test_text_that_is_no_utf8_does_not_hide_what_a_request_is(tmp_path: Path, otlp: Any) -> None:
    whole = otlp.protobuf(otlp.traces(otlp.span(name="search me")))
    body = whole.replace(b"search me", b"\xffearch me")
    path = tmp_path / "file"
    path.write_bytes(body)
    (found,) = sound(path)
    assert found.signal is Signal.TRACES
    assert decode_traces(found.body).groups


def test_a_bad_line_costs_only_itself(tmp_path: Path, documents: list[Any]) -> None:
    good = json.dumps(documents[0])
    path = tmp_path / "file"
    path.write_text(f'{good}\n{{\n{{"x": 1}}\n7\n{good}')
    found = list(requests(path))
    assert [isinstance(one, Found) for one in found] == [True, False, False, False, True]
    assert [str(one) for one in found[1:4]] == [
        "line 2 is no JSON object",
        "line 3 is no OTLP/JSON: it needs one of resourceSpans, resourceLogs, resourceMetrics",
        "line 4 is no JSON object",
    ]


def test_many_documents_of_a_file_take_time_by_their_number_only(tmp_path: Path) -> None:
    """A copy of the rest for each of them would be two terabytes."""
    path = tmp_path / "file"
    path.write_bytes(b"[]\n" * 700_000)
    assert list(requests(path)) == []


def test_a_document_does_not_grow_over_the_limit(tmp_path: Path, otlp: Any) -> None:
    """Escapes and blanks that its writer left out would have the receiver refuse it."""
    document = otlp.traces(otlp.span(name="價" * 1000 + "HALF"))
    text = json.dumps([document], ensure_ascii=False, separators=(",", ":"))
    path = tmp_path / "file"
    path.write_text(text.replace("HALF", r"\ud800"), "utf-8")  # half of a pair of surrogates
    (found,) = sound(path)
    assert len(found.body) <= path.stat().st_size
    ((_, (span,)),) = otlp_json.decode_traces(found.body).groups
    assert span.name.startswith("價價價")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello, world", "neither OTLP/JSON nor OTLP/protobuf"),
        (b'{"resourceSpans": [', "no JSON"),
        (gzip.compress(b"x" * 9999, mtime=0)[:-20], "damaged or cut off"),
        (b"\x1f\x8bnonsense", "damaged or cut off"),
        (zstd(b'{"resourceSpans": []}' * 99)[:-5], "damaged or cut off"),
        (zstd(b"")[:4] + b"nonsense", "damaged or cut off"),
    ],
)
def test_what_is_no_telemetry_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FileError, match=words):
        list(requests(path))


def test_a_stream_that_is_cut_off_gives_what_was_whole(tmp_path: Path, otlp: Any) -> None:
    message = otlp.protobuf(otlp.traces(otlp.span()))
    path = tmp_path / "file"
    prefix = PREFIXES["four bytes"](len(message))
    for end, words in ((3, "in the middle of a message's size"), (20, "message 2 is cut off")):
        path.write_bytes((prefix + message) + (prefix + message)[:end])
        found = requests(path)
        assert isinstance(next(found), Found)
        with pytest.raises(FileError, match=words):
            next(found)


def test_an_empty_file_has_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"", b"\n \n", gzip.compress(b"")):
        path.write_bytes(content)
        assert list(requests(path)) == []


def test_a_document_over_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    limit = MAX_UNPACKED[Encoding.JSON]
    with gzip.open(path, "wb", 1) as file:
        file.write(b'{"resourceSpans": [], "x": "')
        for _ in range(40):
            file.write(b"x" * (limit // 8))
    with pytest.raises(FileError, match="larger than 16 MiB"):
        list(requests(path))


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=200), packed=st.sampled_from(sorted(PACKED)))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes, packed: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(PACKED[packed](content))
    with suppress(FileError):
        list(requests(path))
