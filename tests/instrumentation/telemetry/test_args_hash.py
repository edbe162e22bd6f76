"""The hash of arguments: stable, blind to order, and never in the way."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import io
import json
import math
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseboard.arguments import hash_arguments, plain

VECTORS = Path(__file__).parents[2] / "data" / "args_hash_vectors.json"


def decode(value: Any) -> Any:
    """Read the few values of the vectors that JSON cannot hold."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$python"}:
        return {
            "nan": math.nan,
            "infinity": math.inf,
            "bytes": b"\x00\xff",
            "tuple": (1, 2),
            "set": {"b", "a"},
            "surrogate": "half \ud83e",
            "big": 2**70,
            "decimal": decimal.Decimal("1.50"),
            "date": dt.date(2026, 11, 30),
            "uuid": uuid.UUID(int=7),
            "object": object(),
            "long_text": "x" * 5000,
        }[value["$python"]]
    return {key: decode(item) for key, item in value.items()}


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text()), ids=lambda v: v["name"])
def test_golden_vectors(vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEBOARD_HASH_KEY", raising=False)
    if "key" in vector:
        monkeypatch.setenv("FUSEBOARD_HASH_KEY", vector["key"])
    arguments = decode(vector["arguments"])
    assert hash_arguments(arguments, vector.get("ignore", ())) == vector["hash"]


def test_order_of_keys_does_not_matter_at_any_depth() -> None:
    assert hash_arguments({"a": {"x": 1, "y": [2]}, "b": 1}) == hash_arguments(
        {"b": 1, "a": {"y": [2], "x": 1}}
    )


def test_volatile_arguments_are_left_out() -> None:
    assert hash_arguments({"q": 1, "now": 5}, ["now"]) == hash_arguments({"q": 1})
    assert hash_arguments({"q": 1, "now": 5}) != hash_arguments({"q": 1})


def test_different_keys_give_different_pseudonyms(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    for key in ("", "one", "two", "k" * 100, "ключ"):
        monkeypatch.setenv("FUSEBOARD_HASH_KEY", key)
        seen.add(hash_arguments({"q": "x"}))
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (None, "null"),
        (1, 1.0),
        (math.nan, None),
        (math.inf, -math.inf),
        (b"a", "a"),
        ([1], {"0": 1}),
        (2**70, 2**70 + 1),
        ("x" * 5000, "x" * 5001),
        ({1: 2}, {"1": 2}),
    ],
)
def test_values_that_look_alike_are_told_apart(one: object, other: object) -> None:
    assert hash_arguments({"v": one}) != hash_arguments({"v": other})


def test_quick_and_careful_ways_agree() -> None:
    scalars = {"text": "süß \ud83e", "n": -5, "x": 0.1, "yes": True, "none": None}
    careful = json.dumps(plain(scalars), sort_keys=True)
    assert careful == json.dumps(scalars, sort_keys=True)


class Touchy:
    """Fails on any look."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was touched")

    def _fail(self, *args: Any) -> Any:
        raise AssertionError("the object was used")

    __iter__ = __len__ = __repr__ = __str__ = __eq__ = __bool__ = __getitem__ = _fail
    __next__ = __aiter__ = __call__ = __contains__ = __index__ = __float__ = _fail
    __hash__ = object.__hash__


class TouchyList(list):  # type: ignore[type-arg]
    __iter__ = __len__ = __getitem__ = Touchy._fail


class TouchyDict(dict):  # type: ignore[type-arg]
    __iter__ = __len__ = __getitem__ = keys = items = Touchy._fail


class TouchyText(str):
    __str__ = __repr__ = __len__ = encode = Touchy._fail
    __slots__ = ()


def test_hc_13_looking_consumes_nothing_and_touches_nothing() -> None:
    generator = (n for n in range(3))
    stream = io.StringIO("content")
    arguments = {
        "generator": generator,
        "file": stream,
        "map": map(str, [1]),
        "spy": Touchy(),
        "inside": [Touchy(), {"deep": Touchy()}],
        "list": TouchyList([1]),
        "dict": TouchyDict(a=1),
        "text": TouchyText("t"),
    }
    digest = hash_arguments(arguments)
    assert digest != hash_arguments({})
    assert not digest.endswith("0" * 16)
    assert list(generator) == [0, 1, 2]
    assert stream.tell() == 0


def test_hc_13_one_shot_objects_count_by_their_type() -> None:
    assert hash_arguments({"g": (n for n in [1])}) == hash_arguments({"g": (n for n in [2])})
    assert hash_arguments({"g": (n for n in [1])}) != hash_arguments({"g": iter([1])})


def awkward() -> dict[str, Any]:
    itself: dict[str, Any] = {"name": "loop"}
    itself["self"] = itself
    nested: Any = "bottom"
    for _ in range(50_000):
        nested = [nested]
    ring: list[Any] = []
    ring.append((ring,))

    @dataclasses.dataclass
    class Node:
        parent: Any = None
        children: list[Any] = dataclasses.field(default_factory=list)

    root = Node()
    root.children.append(Node(parent=root))

    class Colour(enum.StrEnum):
        RED = "red"

    class Deep:
        def __getattr__(self, name: str) -> Any:
            return getattr(self, name + "_")

    return {
        "self-reference": itself,
        "ring": ring,
        "nested": nested,
        "dataclass": root,
        "long list": list(range(1_000_000)),
        "large dict": {str(n): n for n in range(100_000)},
        "large set": set(range(100_000)),
        "long text": "é" * 5_000_000,
        "large int": 7**100_000,
        "bytes": b"x" * 5_000_000,
        "odd keys": {1: "a", None: "b", (1, 2): "c", Touchy(): "d"},
        "mixed set": {1, "a", None, (2,)},
        "recursive getattr": Deep(),
        "enum": Colour.RED,
        "nan": float("nan"),
        "surrogate": {"\ud83e": "\udc00"},
        "aware time": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "touchy": Touchy(),
    }


@pytest.mark.parametrize("case", awkward())
def test_hc_09_awkward_values_neither_raise_nor_stall(case: str) -> None:
    value = awkward()[case]
    began = time.perf_counter()
    digest = hash_arguments({"value": value})
    elapsed = time.perf_counter() - began
    assert digest.startswith("v1:")
    assert not digest.endswith("0" * 16), "the last resort was used"
    assert digest == hash_arguments({"value": value})
    assert elapsed < 1.0  # typically under 5 ms
    text = json.dumps(plain(value), allow_nan=False)
    assert len(text) < 1_000_000
    json.loads(text, parse_constant=lambda bad: pytest.fail(f"not strict JSON: {bad}"))


def test_even_a_broken_mapping_gives_a_hash() -> None:
    assert hash_arguments(Touchy()) == "v1:" + "0" * 16  # type: ignore[arg-type]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(st.dictionaries(st.text(), json_values))
def test_any_arguments_hash_alike_in_any_order(arguments: dict[str, Any]) -> None:
    backwards = dict(reversed(list(arguments.items())))
    digest = hash_arguments(arguments)
    assert digest == hash_arguments(backwards)
    assert len(digest) == 19
    assert int(digest[3:], 16) > 0
