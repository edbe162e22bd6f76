"""Objectives: defaults, what is legal, and the file that sets others."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseboard.errors import ConfigurationError
from fuseboard.policy.file import read_policies
from fuseboard_dashboard.objective_file import read_objectives
from fuseboard_dashboard.objectives import ObjectiveBook, Objectives, doubts

TEXT = """
[defaults]
budget = 60

[objectives]
availability = 0.999
period_days = 14

[objectives.tools.search]
latency_seconds = 5
correctness = false

[objectives.tools."send mail"]
availability = 0.9
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "fuseboard.toml"
    path.write_text(text)
    return path


def test_defaults() -> None:
    assert Objectives() == Objectives(0.995, 0.95, 2.0, 0.99)
    assert ObjectiveBook().bounds() == {
        "bound_tools": [], "bound_seconds": [], "slow_seconds": 2.0,
    }  # fmt: skip
    assert ObjectiveBook().of("any") == Objectives()


def test_a_file_changes_what_it_mentions(tmp_path: Path) -> None:
    book, words = read_objectives(written(tmp_path, TEXT))
    assert words == []
    assert book.period_days == 14
    assert book.default == Objectives(availability=0.999)
    assert book.of("search") == Objectives(0.999, 0.95, 5, None)
    assert book.of("send mail").availability == 0.9
    assert book.bounds() == {"bound_tools": ["search"], "bound_seconds": [5], "slow_seconds": 2.0}


def test_an_agent_may_read_its_policies_from_the_same_file(tmp_path: Path) -> None:
    assert "budget" in read_policies(written(tmp_path, TEXT)).words()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[objectives]\navailability = 99.5", r"line 2: .*availability = 99.5: must be"),
        ("[objectives]\navailability = 99.5", "below 1, or false; for 99.5 % write 0.995"),
        ("[objectives]\nlatency = 1", r"line 2: \[objectives\] latency = 1: must be a share"),
        ("[objectives]\nlatency = true", r"latency = true: must be a share"),
        ("[objectives]\nlatency_seconds = 0", r"latency_seconds = 0: must be seconds above 0"),
        ("[objectives]\nlatency_seconds = inf", r"latency_seconds = inf: must be seconds"),
        ("[objectives]\nlatncy = 0.9", r"line 2: .* no setting 'latncy'; did you mean 'latency'\?"),
        ("[objectives]\nperiod_days = 90", "line 2: .* 90: must be whole days from 7 to 30"),
        ("[objectives]\nperiod_days = 7.5", r"period_days = 7.5: must be whole days"),
        ("[objectives.tools.a]\nperiod_days = 8", r"tools.a\]: there is no setting 'period"),
        ("[objectives.tools]\na = 1", r"line 2: \[objectives.tools.a\]: must be a table, not 1"),
        ("objectives = 1", r"\[objectives\]: must be a table, not 1"),
        ("[defaults]", r"has no table \[objectives\]"),
        ("[objectives", "is not valid TOML"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_objectives(written(tmp_path, text))
    assert str(tmp_path / "fuseboard.toml") in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the configuration file"):
        read_objectives(tmp_path / "none.toml")


def test_what_is_hardly_meant_is_said(tmp_path: Path) -> None:
    text = "[objectives]\ncorrectness = 0.99999\n[objectives.tools.a]\nlatency = 0.05\n"
    _, words = read_objectives(written(tmp_path, text))
    assert [each.partition(": ")[2] for each in words] == [
        "[objectives] correctness = 0.99999: one bad call of 100,000 spends the whole budget",
        "[objectives.tools.a] latency = 0.05: more than half of the calls may be bad; is it 0.95?",
    ]
    assert doubts(Objectives()) == []
