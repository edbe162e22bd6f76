"""The reference pages say what the code does: options, variables, exceptions, classes."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import re
import subprocess
import types

import pytest
from tests.docs.pages import (
    CLASSIFICATION,
    CONFIGURATION,
    OVERVIEW,
    POLICY_PAGES,
    ROOT,
    defaults_of,
    documented,
    section,
    table,
)

import fuseboard
from fuseboard import conventions
from fuseboard.adapters.anthropic_tools import AnthropicTools
from fuseboard.adapters.openai_tools import OpenAITools
from fuseboard.calls.wrapping import ToolOptions
from fuseboard.classification import judge_exception, judge_result
from fuseboard.classification.http import judge_status
from fuseboard.record import Fault

NO_ERROR = "no error"


def test_every_option_of_init_is_documented_with_its_default() -> None:
    found = documented(section(CONFIGURATION, "## `fuseboard.init`"), "option")
    assert found == defaults_of(fuseboard.init)


def test_every_option_of_tool_is_documented() -> None:
    found = documented(section(CONFIGURATION, "## `fuseboard.tool` and `fuseboard.wrap`"), "option")
    assert found.keys() == set(ToolOptions.__annotations__)
    assert found.keys() == {
        "name", "policy", "region", "upstream", "type", "regions", "ignore_arguments",
        "hash_arguments", "on_error",
    }  # fmt: skip


def test_every_option_of_call_is_documented_with_its_default() -> None:
    found = documented(section(CONFIGURATION, "## `fuseboard.call`"), "option")
    wanted = defaults_of(fuseboard.call)
    assert found.keys() == wanted.keys()
    assert found.pop("region") == "the process's"
    assert found == {name: default for name, default in wanted.items() if name != "region"}


def test_every_member_of_the_current_call_is_documented() -> None:
    page = section(CONFIGURATION, "## `fuseboard.current_call()`")
    found = {row[0].strip("`").split("(")[0] for row in table(page, "member")}
    assert found == {name for name in vars(fuseboard.CurrentCall) if not name.startswith("_")}


def test_every_member_of_a_call_is_named() -> None:
    page = section(CONFIGURATION, "## `fuseboard.call`")
    for name in (name for name in vars(fuseboard.call) if not name.startswith("_")):
        assert re.search(rf"`{name}\b|\.{name}\(", page), name


@pytest.mark.parametrize("name", ["flush", "shutdown", "serve_metrics", "metrics_text"])
def test_functions_are_documented_with_their_defaults(name: str) -> None:
    options = ", ".join(f"{n}={d}" for n, d in defaults_of(getattr(fuseboard, name)).items())
    assert f"| `{name}({options})` |" in section(CONFIGURATION, "## Other functions")


def test_every_public_name_is_on_a_page() -> None:
    pages = "\n".join([CONFIGURATION, CLASSIFICATION, OVERVIEW, *POLICY_PAGES.values()])
    for name in fuseboard.__all__:
        assert re.search(rf"\b{name}\b", pages), name


def test_every_environment_variable_is_documented() -> None:
    page = section(CONFIGURATION, "## Environment variables")
    known = {name for row in table(page, "variable") for name in re.findall(r"`(\w+)`", row[0])}
    ours = {value for name, value in vars(conventions).items() if name.startswith("ENV_")}
    assert ours <= known
    roots = ("instrumentation", "collector", "dashboard", "alerts", "grafana", "server")
    sources = [path for root in roots for path in (ROOT / root).rglob("*.py")]
    text = "\n".join(path.read_text() for path in sources)
    read = set(re.findall(r'"((?:OTEL|FUSEBOARD|XDG)_[A-Z0-9_]+)"', text))
    assert read <= known
    by_the_sdk = {
        "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER",
        "OTEL_TRACES_SAMPLER_ARG", "PROMETHEUS_MULTIPROC_DIR",
    }  # fmt: skip
    assert known - by_the_sdk <= read


def test_every_field_of_a_verdict_is_documented() -> None:
    found = {row[0].strip("`") for row in table(CLASSIFICATION, "field of `Verdict`")}
    assert found == {field.name for field in dataclasses.fields(fuseboard.Verdict)}


def test_the_classes_are_all_there() -> None:
    found = [row[0].strip("`") for row in table(CLASSIFICATION, "class")]
    assert found == [str(error_class) for error_class in fuseboard.ErrorClass]


RETURNED = [(row[0], row[1]) for row in table(CLASSIFICATION, "returned")]


@pytest.mark.parametrize(("shown", "wanted"), RETURNED, ids=[shown for shown, _ in RETURNED])
def test_returned_values_have_the_class_that_the_page_says(shown: str, wanted: str) -> None:
    finding = judge_result(ast.literal_eval(shown.strip("`")), now=0.0)
    found = NO_ERROR if finding is None else str(finding.verdict.error_class)
    assert found == wanted.strip("`")


RAISED = [
    (name, row[1].strip("`"))
    for row in table(CLASSIFICATION, "exception")
    for name in re.findall(r"`(\w+)`", row[0])
]


@pytest.mark.parametrize(("name", "wanted"), RAISED)
def test_exceptions_have_the_class_that_the_page_says(name: str, wanted: str) -> None:
    fault = judge_exception(getattr(builtins, name)(), now=0.0)
    assert isinstance(fault, Fault)
    assert str(fault.verdict.error_class) == wanted


def test_every_option_of_tool_loops_is_documented_with_its_default() -> None:
    page = section((ROOT / "docs" / "tool-loops.md").read_text(), "## Defaults")
    for made in (OpenAITools, AnthropicTools):
        wanted = defaults_of(made) | defaults_of(made.run) | defaults_of(made.run_async)
        for given in ("self", "answer"):
            wanted.pop(given)
        assert documented(page, "option") == wanted


CODES = [
    (said_by, code.strip("`"), wanted.strip("`"))
    for said_by, codes, wanted in table(
        section(CLASSIFICATION, "### Codes of other kinds"), "said by"
    )
    for code in codes.split(", ")
]


class CodedError(Exception):
    """Carries a code as the clients of a family do."""

    def __init__(self, family: str, code: str) -> None:
        super().__init__(code)
        if family == "gRPC":
            name = types.SimpleNamespace(name=code)
            self.code, self.details = (lambda: name), (lambda: "")
        else:
            self.sqlstate = code


@pytest.mark.parametrize(("family", "code", "wanted"), CODES)
def test_codes_have_the_class_that_the_page_says(family: str, code: str, wanted: str) -> None:
    error: Exception = CodedError(family, code)
    if family == "exit status":
        error = subprocess.CalledProcessError(int(code), "x")
    fault = judge_exception(error, 0.0)
    assert isinstance(fault, Fault)
    assert fault.verdict.error_class.value == wanted


def test_every_status_has_the_class_that_the_page_says() -> None:
    rows = list(table(section(CLASSIFICATION, "### HTTP status"), "status"))
    said: dict[int, str] = {}
    for status, error_class in rows:
        if "insufficient_quota" in status:
            for number in map(int, re.findall(r"\d{3}", status)):
                verdict = judge_status(number, "insufficient_quota")
                assert str(verdict.error_class) == error_class.strip("`")
            continue
        for number in re.findall(r"\b\d{3}\b", status):
            assert said.setdefault(int(number), error_class.strip("`")) == error_class.strip("`")
    others = {4: "L1_input", 5: "L3_transient"}
    assert "| 400, 404" in CLASSIFICATION
    for status_code in range(400, 600):
        found = str(judge_status(status_code).error_class)
        assert found == said.get(status_code, others[status_code // 100]), status_code
