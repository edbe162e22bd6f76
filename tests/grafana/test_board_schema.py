"""The boards against Grafana's own types, and against a strict schema where those are loose."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

SCHEMA_FILE = Path(__file__).parent / "data" / "grafana-schema-13.2.3.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))

SOURCE = {
    "type": "object",
    "required": ["type", "uid"],
    "additionalProperties": False,
    "properties": {"type": {"const": "prometheus"}, "uid": {"const": "${datasource}"}},
}
TEXT = {"type": "string", "minLength": 1}

# Grafana's types leave a query to its data source; the keys are those that the Prometheus data
# source reads.
TARGET = {
    "type": "object",
    "required": ["refId", "expr", "legendFormat", "datasource", "range", "instant", "exemplar"],
    "additionalProperties": False,
    "properties": {
        "refId": {"type": "string", "pattern": "^[A-Z]$"},
        "expr": TEXT,
        "legendFormat": TEXT,
        "interval": {"type": "string", "pattern": "^[0-9]+[sm]$"},
        "datasource": SOURCE,
        "range": {"type": "boolean"},
        "instant": {"type": "boolean"},
        "exemplar": {"type": "boolean"},
        "editorMode": {"enum": ["code", "builder"]},
    },
}
# Its type of an annotation describes the built-in kind only; this one is Prometheus'.
ANNOTATION = {
    "type": "object",
    "required": ["name", "enable", "iconColor", "datasource", "target"],
    "additionalProperties": False,
    "properties": {
        "name": TEXT,
        "enable": {"type": "boolean"},
        "hide": {"type": "boolean"},
        "iconColor": {"type": "string", "pattern": "^#[0-9A-F]{6}$"},
        "datasource": SOURCE,
        "titleFormat": TEXT,
        "textFormat": TEXT,
        "tagKeys": TEXT,
        "target": {
            "type": "object",
            "required": ["refId", "expr"],
            "additionalProperties": False,
            "properties": {"refId": TEXT, "expr": TEXT, "interval": TEXT},
        },
    },
}


def violations(board: dict[str, Any]) -> list[str]:
    checked = copy.deepcopy(board)
    annotations = checked["annotations"].pop("list")
    found = _errors(SCHEMA["dashboard"], checked)
    for annotation in annotations:
        found += _errors(ANNOTATION, annotation)
    for panel in board["panels"]:
        if panel["type"] != "row":
            kind = SCHEMA["panels"][panel["type"]]
            found += _errors(kind["options"], panel["options"])
            found += _errors(kind["custom"], panel["fieldConfig"]["defaults"]["custom"])
            for target in panel["targets"]:
                found += _errors(TARGET, target)
    return found


def _errors(schema: dict[str, Any], value: object) -> list[str]:
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft7Validator(schema).iter_errors(value)
    ]


def test_board_has_grafanas_shape(board: dict[str, Any]) -> None:
    assert violations(board) == []


def test_schema_datum_is_small_and_says_where_it_comes_from() -> None:
    assert SCHEMA_FILE.stat().st_size < 60_000
    assert "@grafana/schema 13.2.3 (Apache-2.0" in SCHEMA["$comment"]
    licence = SCHEMA_FILE.with_name("LICENSE.grafana-schema.txt").read_text()
    assert "Apache License" in licence


@pytest.mark.parametrize(
    "path",
    [
        "panels/1/fieldConfig/defaults/unitt",
        "panels/1/titel",
        "panels/1/targets/0/exprr",
        "panels/1/options/legend/shown",
        "panels/1/fieldConfig/defaults/custom/fillOpacty",
        "templating/list/1/refreshh",
        "annotations/list/0/enabledd",
        "annotations/list/0/target/query",
    ],
)
def test_misspelt_keys_are_found(board: dict[str, Any], path: str) -> None:
    *way, last = path.split("/")
    place: Any = board
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = "x"
    assert len(violations(board)) >= 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("panels/1/fieldConfig/defaults/unit", 5),
        ("panels/1/fieldConfig/defaults/thresholds/mode", "absolut"),
        ("panels/1/options/tooltip/mode", "many"),
        ("templating/list/1/type", "querry"),
    ],
)
def test_wrong_values_are_found(board: dict[str, Any], path: str, value: object) -> None:
    *way, last = path.split("/")
    place: Any = board
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    assert len(violations(board)) >= 1
