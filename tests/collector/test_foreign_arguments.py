"""A foreign call and our own call with the same arguments have the same hash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from assembled_exports import expected_of, whole
from recorded_exports import RECEIVED, Recording, recordings

from fuseboard import conventions as c
from fuseboard.arguments import hash_arguments
from fuseboard_collector.normalise.arguments import bound_by_name, hash_of
from fuseboard_collector.normalise.dialects import genai, openinference
from fuseboard_collector.normalise.dialects.dialect import Dialect
from fuseboard_collector.normalise.incoming import IncomingSpan, Source, Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.store.rows import ToolCall

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "args_hash_vectors.json").read_text())
# Those that are JSON, with the default key and nothing left out.
VECTORS = [
    vector
    for vector in GOLDEN
    if vector.keys() == {"name", "arguments", "hash"} and '"$' not in json.dumps(vector)
]

# What the scripted models asked of the tools of the recorded runs.
ASKED: dict[str, list[dict[str, Any]]] = {
    "charge_card": [{"order_id": "A-17", "amount": 12.5}],
    "check_quota": [{"user": "ana"}],
    "drop_tables": [{"really": True}],
    "fetch_page": [{"url": "https://example.com/a"}],
    "fetch_page_async": [{"url": "https://example.com/a"}, {"url": "https://example.com/b"}],
    "get_weather": [{"city": city} for city in ("Lisbon", "Faro", "Oslo", "Porto", "Bonn")]
    + [{"town": 3}, {"town": "Lisbon"}, {}],
    "get_weather_async": [{"city": city} for city in ("Faro", "Oslo", "Porto", "Bonn", "Kyiv")],
    "list_invoices": [{"customer": "Ana"}],
    "list_invoices_async": [{"customer": "Ana"}],
    "lookup_order": [{"order_id": "A-17"}, {"order_id": "B-2"}],
    "refund": [{"order_id": "A-17"}],
    "reserve_seat": [{"seat": seat} for seat in ("1A", "2B", "3C")],
    "search_docs": [{"query": "refund"}, {"query": "refund policy"}],
    "slow_report": [{"days": 7}, {"days": 1}],
    "sync_inventory": [{"sku": "SKU-9"}],
    "sync_inventory_async": [{"sku": "SKU-9"}],
    "translate": [{"text": "olá"}, {"text": "ola"}],
}
# Of emitters that record no arguments, or none that have names.
WITHOUT = (
    "fastmcp-native/", "google-adk-native/", "langchain-openinference/", "mcp-native/",
)  # fmt: skip


@pytest.mark.parametrize("name", recordings())
def test_a_recorded_call_has_the_hash_that_the_shim_gives_its_arguments(name: str) -> None:
    recording = recordings()[name]
    for item, call in executed(recording):
        shims = {hash_arguments(asked) for asked in ASKED[item["tool"]]}
        if name.startswith(WITHOUT):
            assert call.args_hash is None or call.args_hash in shims
        else:
            assert call.args_hash in shims


REPEATED = [
    name
    for name in recordings()
    if name.split("/")[1].startswith("retry") and not name.startswith(WITHOUT)
]


@pytest.mark.parametrize("name", REPEATED)
def test_calls_that_are_repeated_have_one_hash_whoever_repeats_them(name: str) -> None:
    hashes: dict[str, set[str | None]] = {}
    for item, call in executed(recordings()[name]):
        hashes.setdefault(item["tool"], set()).add(call.args_hash)
    seats = hashes.pop("reserve_seat", None)
    assert seats is None or len(seats) == 3
    assert all(len(found) == 1 and None not in found for found in hashes.values())


def executed(recording: Recording) -> list[tuple[dict[str, Any], ToolCall]]:
    calls = whole(recording.name).calls()
    return [
        (expected.last, calls[span_id])
        for expected in expected_of(recording)
        for span_id in calls.keys() & expected.spans
    ]


def hashed(
    value: Any, name: str = c.GEN_AI_TOOL_CALL_ARGUMENTS, dialect: Dialect = genai.DIALECT
) -> Any:
    return hash_of(IncomingSpan("1" * 32, "2" * 16, attributes={name: value}), dialect)


def test_enough_of_the_golden_vectors_are_json() -> None:
    assert len(VECTORS) >= 5


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda a: a,
        json.dumps,
        lambda a: json.dumps(a, indent=2),
        lambda a: json.dumps(json.dumps(a)),
        lambda a: json.dumps({"args": [], "kwargs": a}),
        lambda a: json.dumps({"kwargs": a}),
        lambda a: json.dumps({"tool_name": "search", "arguments": a}),
        lambda a: json.dumps({"method": "tools/call", "params": {"name": "s", "arguments": a}}),
        lambda a: json.dumps({"input_str": repr(a), "tags": [], "metadata": {}}),
        lambda a: json.dumps({"input_str": "", "tags": [], "metadata": {}, "inputs": a}),
        lambda a: json.dumps({"input_str": repr(a), "tags": ["cut"]})[:-6],
        lambda a: repr(a) if a else "{}",
        lambda a: json.dumps({"type": "tool_call", "name": "s", "id": "1", "args": a}),
    ],
)
def test_the_golden_vectors_hold_in_every_wrapper(vector: Any, wrap: Any) -> None:
    assert hashed(wrap(vector["arguments"])) == vector["hash"]


@pytest.mark.parametrize(
    "value",
    [
        "Lisbon", "3", "null", "[1, 2]", '"just text"', "", None, 7, True, b"bytes", ["Lisbon"],
        '{"q": "cut in the mid', '{"args": ["Lisbon"], "kwargs": {}}', '{"kwargs": "text"}',
        "{'q': call()}", "{'q': 1, 2: 3}", {"input_str": "Lisbon", "metadata": {}},
        '{"a":' * 50_000, "[" * 100_000, '{"q": "' + "x" * 300_000 + '"}',
        {"tool_name": "search", "arguments": None},
    ],
    ids=lambda v: repr(v)[:20],
)  # fmt: skip
def test_what_cannot_be_bound_by_name_has_no_hash(value: Any) -> None:
    assert hashed(value) is None


def test_parameters_count_only_where_they_are_no_definition() -> None:
    def parameters(value: Any) -> Any:
        return hashed(json.dumps(value), "tool.parameters", openinference.DIALECT)

    assert parameters({"city": "Oslo"}) == hash_arguments({"city": "Oslo"})
    assert parameters({"type": "object", "properties": {"city": {}}, "required": []}) is None
    assert parameters({"city": {"type": "string", "description": "Name."}}) is None
    assert parameters({}) == hash_arguments({})


def test_a_tools_own_parameters_may_be_called_like_a_wrapper() -> None:
    for arguments in (
        {"args": "x", "kwargs": {}, "more": 1}, {"tool_name": "t", "arguments": {}, "more": 1},
        {"method": "get"}, {"params": {"a": 1}}, {"input_str": "x"}, {"type": "tool_call"},
    ):  # fmt: skip
        assert bound_by_name(arguments) == arguments


def test_the_key_of_the_shim_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    default = hashed('{"q": 1}')
    monkeypatch.setenv(c.ENV_HASH_KEY, "a key of one's own")
    assert hashed('{"q": 1}') == hash_arguments({"q": 1}) != default


def test_numbers_that_json_does_not_have_are_hashed_as_the_shim_does() -> None:
    assert hashed('{"x": NaN, "y": -Infinity}') == hash_arguments(
        {"x": float("nan"), "y": float("-inf")}
    )
    assert hashed({"x": 2**70, "s": "\ud800"}) == hash_arguments({"x": 2**70, "s": "\ud800"})


def kept(value: Any, **options: Any) -> Any:
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "x.size": 1,
        c.GEN_AI_TOOL_CALL_ARGUMENTS: value,
    }  # fmt: skip
    span = IncomingSpan("1" * 32, "2" * 16, attributes=attributes)
    batch = normalise_traces(Traces([(Source({}), [span])]), RECEIVED, **options)
    (row,) = batch.sightings
    assert row.attributes is not None
    return json.loads(row.attributes).get(c.GEN_AI_TOOL_CALL_ARGUMENTS)


def test_arguments_are_kept_on_purpose_only() -> None:
    value = json.dumps({"args": [], "kwargs": {"q": "Oslo", "n": 3}})
    assert kept(value) is None
    assert json.loads(kept(value, keep_arguments=True)) == {"q": "Oslo", "n": 3}


def test_kept_arguments_are_redacted_and_bounded() -> None:
    value = {
        "url": "https://ana:hunter2@api.test/?k=hunter2",
        "password": "hunter2",
        "b": "x" * 10**6,
    }
    found = kept(value, keep_arguments=True)
    assert "hunter2" not in found
    assert len(found) <= 8192
    many = kept({f"k{n}": "x" * 400 for n in range(500)}, keep_arguments=True)
    assert len(many) <= 8192
    assert json.loads(kept("Lisbon", keep_arguments=True)) == "Lisbon"
    assert kept(None, keep_arguments=True) is None


def test_what_a_sender_printed_is_not_warned_about_on_standard_error() -> None:
    code = """
from fuseboard_collector.normalise.arguments import bound_by_name
from fuseboard_collector.normalise.wording import plain_words
print(bound_by_name("{'a': 1if}"), bound_by_name("{'a': 'C:\\\\d'}"), plain_words("Odd(1if)"))
"""
    run = [sys.executable, "-W", "always", "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert (found.stdout, found.stderr) == ("None {'a': 'C:\\\\d'} Odd(1if)\n", "")
