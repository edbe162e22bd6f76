"""Validation, feedback and jobs in a file of policies: functions and models by their names."""

from __future__ import annotations

import collections
import json
import operator
from pathlib import Path
from typing import Any

import pytest

from fuseboard import ConfigurationError, Feedback, Policy, Poll, Validation
from fuseboard.policy.file import read_policies

WRITTEN = """
[tools.search]
effects = "none"

[tools.search.validation]
non_empty = true
predicate = "operator:truth"
model = "collections:OrderedDict"
schema = { type = "object", required = ["pages"] }

[tools.search.feedback]
repair = "json:loads"
corrections = 1

[tools.search.poll]
check = "json:dumps"
interval = 0.5
"""


def policy_in(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "fuseboard.toml"
    path.write_text(text)
    file = read_policies(path)
    policy = file.policy_for("search", None, file.defaults_for(None))
    assert policy is not None
    return policy


def test_all_of_it_can_be_written(tmp_path: Path) -> None:
    assert policy_in(tmp_path, WRITTEN) == Policy(
        effects="none",
        validation=Validation(
            non_empty=True,
            predicate=operator.truth,
            model=collections.OrderedDict,
            schema={"type": "object", "required": ["pages"]},
        ),
        feedback=Feedback(json.loads, corrections=1),
        poll=Poll(json.dumps, interval=0.5),
    )


@pytest.mark.parametrize("option", ["predicate", "model", "schema"])
def test_false_stands_for_none(tmp_path: Path, option: str) -> None:
    policy = policy_in(tmp_path, f"[tools.search.validation]\n{option} = false\n")
    assert policy.validation == Validation()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[tools.search.validation]\nschema = { type = "nix" }', "is no valid JSON Schema"),
        ("[tools.search.validation]\nschema = 3", "must be a dict"),
        ('[tools.search.feedback]\nrepair = "ask"', "must be a function"),
        ("[tools.search.feedback]\ncorrections = 2", "repair"),
        ('[tools.search.poll]\ncheck = "json:dumps"\ninterval = 0', "interval = 0"),
    ],
)
def test_mistakes_have_a_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        policy_in(tmp_path, text)
    assert "fuseboard.toml, line " in str(caught.value)


def test_what_a_file_asks_for_acts(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, WRITTEN)
    assert policy.validation is not None
    answers: list[Any] = [{"pages": []}, {}]
    problems = [[check(answer) for check in policy.validation.checks] for answer in answers]
    assert [any(found) for found in problems] == [False, True]
