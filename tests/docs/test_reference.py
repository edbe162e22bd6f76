"""The reference pages say what the code does: options, variables, exceptions, classes."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import re
import subprocess
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fuseboard
from fuseboard import conventions, errors
from fuseboard.adapters.anthropic_tools import AnthropicTools
from fuseboard.adapters.openai_tools import OpenAITools
from fuseboard.calls import packets
from fuseboard.calls.wrapping import ToolOptions
from fuseboard.classification import judge_exception, judge_result
from fuseboard.classification.http import judge_status
from fuseboard.policy.workers import MAX_ABANDONED_THREADS
from fuseboard.record import Fault

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
CLASSIFICATION = (ROOT / "docs" / "classification.md").read_text()
POLICIES = (ROOT / "docs" / "policies.md").read_text()
NO_ERROR = "no error"


def section(text: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    level = heading.split(" ", maxsplit=1)[0]
    start = text.index(f"\n{heading}\n") + len(heading) + 2
    end = re.search(rf"^#{{1,{len(level)}}} ", text[start:], flags=re.MULTILINE)
    return text[start : start + end.start()] if end else text[start:]


def table(text: str, first_header: str) -> Iterator[list[str]]:
    """Yield the rows of the table whose header begins so, as lists of cells."""
    lines = iter(text.splitlines())
    assert any(line.startswith(f"| {first_header} |") for line in lines), first_header
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def documented(text: str, first_header: str) -> dict[str, str]:
    """Return the option → default of a table of options."""
    return {name.strip("`"): default.strip("`") for name, default, *_ in table(text, first_header)}


def defaults_of(function: Callable[..., Any]) -> dict[str, str]:
    signature = inspect.signature(function)
    return {
        name: "required"
        if parameter.default is inspect.Parameter.empty
        else show(parameter.default)
        for name, parameter in signature.parameters.items()
    }


def show(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


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
    pages = CONFIGURATION + CLASSIFICATION + POLICIES
    for name in fuseboard.__all__:
        assert re.search(rf"\b{name}\b", pages), name


def test_every_environment_variable_is_documented() -> None:
    page = section(CONFIGURATION, "## Environment variables")
    known = {name for row in table(page, "variable") for name in re.findall(r"`(\w+)`", row[0])}
    ours = {value for name, value in vars(conventions).items() if name.startswith("ENV_")}
    assert ours <= known
    sources = [*(ROOT / "instrumentation").rglob("*.py"), *(ROOT / "server").rglob("*.py")]
    text = "\n".join(path.read_text() for path in sources)
    read = set(re.findall(r'"((?:OTEL|FUSEBOARD|XDG)_[A-Z0-9_]+)"', text))
    assert read <= known
    by_the_sdk = {
        "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER",
        "OTEL_TRACES_SAMPLER_ARG", "PROMETHEUS_MULTIPROC_DIR",
    }  # fmt: skip
    assert known - by_the_sdk <= read


@pytest.mark.parametrize(
    "cls",
    [
        fuseboard.Policy,
        fuseboard.Retry,
        fuseboard.Breaker,
        fuseboard.Limit,
        fuseboard.Budget,
        fuseboard.Repeats,
        fuseboard.Validation,
    ],
    ids=lambda cls: cls.__name__,
)
def test_every_setting_of_a_policy_is_documented_with_its_default(cls: type) -> None:
    found = documented(POLICIES, f"setting of `{cls.__name__}`")
    wanted = {field.name: field.default for field in dataclasses.fields(cls)}
    assert found == {
        name: show(str(default) if isinstance(default, str) else default)
        for name, default in wanted.items()
    }


def test_every_setting_of_a_cache_is_documented_with_its_default() -> None:
    found = documented(POLICIES, "setting of `Cache`")
    wanted = {field.name: field.default for field in dataclasses.fields(fuseboard.Cache)}
    assert set(wanted.pop("stale_on")) == set(fuseboard.ErrorClass) - {"L1_input"}
    assert found.pop("stale_on") == "all but `L1_input"
    assert found == {name: show(default) for name, default in wanted.items()}
    assert documented(POLICIES, "setting of `RedisStore`") == defaults_of(fuseboard.RedisStore)


def test_every_option_of_a_session_is_documented_with_its_default() -> None:
    page = section(POLICIES, "## Sessions and turns")
    assert documented(page, "option of `session`") == defaults_of(fuseboard.session)
    for function, name in ((fuseboard.turn, "turn"), (fuseboard.session.step, "step")):
        defaults = defaults_of(function)
        defaults.pop("self", None)
        options = ", ".join(f"{option}={default}" for option, default in defaults.items())
        assert f".{name}({options})`" in page
    for cls in (fuseboard.Progress, fuseboard.Spent):
        fields = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls)]
        assert all(re.search(rf"\b{field}\b", page) for field in fields)


@pytest.mark.parametrize(
    ("cls", "left_out"),
    [(fuseboard.Feedback, {"on"}), (fuseboard.Poll, set())],
    ids=["Feedback", "Poll"],
)
def test_settings_that_need_a_function_are_documented(cls: type, left_out: set[str]) -> None:
    found = documented(POLICIES, f"setting of `{cls.__name__}`")
    wanted = defaults_of(cls)
    assert found.keys() == wanted.keys()
    for name in wanted.keys() - left_out:
        assert found[name] == wanted[name]


def test_every_field_of_a_mistake_is_documented() -> None:
    found = {row[0].strip("`") for row in table(POLICIES, "field of `Mistake`")}
    assert found == {field.name for field in dataclasses.fields(fuseboard.Mistake)}


def test_every_key_and_code_of_an_error_packet_is_documented() -> None:
    page = section(POLICIES, "## Error packet")
    found = [row[0].strip("`") for row in table(page, "key")]
    assert found == list(fuseboard.ErrorPacket.__annotations__)
    rows = {row[0].strip("`"): row for row in table(page, "class")}
    assert list(rows) == [str(error_class) for error_class in fuseboard.ErrorClass]
    codes = {code for row in rows.values() for code in re.findall(r"`(\w+)`", row[1])}
    words = [*packets._BY_CLASS.values(), *packets._BY_STATUS.values()]
    assert codes == {each.code for each in [*words, *packets._BY_CLASSIFIER.values()]}


def test_every_setting_of_a_fallback_is_documented() -> None:
    found = documented(POLICIES, "setting of `Fallback`")
    assert found.keys() == {field.name for field in dataclasses.fields(fuseboard.Fallback)}
    of_function, of_value = fuseboard.Fallback(len), fuseboard.Fallback(value=0)
    assert found["source"] == show(str(of_function.source))
    assert found["confidence"] == show(str(of_function.confidence))
    assert found["effects"] == show(str(of_function.effects))
    assert (of_value.source, of_value.confidence) == ("default", "low")


def test_every_exception_that_a_policy_raises_is_documented() -> None:
    page = section(POLICIES, "## Exceptions to catch")
    rows = {row[0].strip("`"): row for row in table(page, "exception")}
    bases = {"FuseboardError", "CallRejectedError", "ConfigurationError"}
    known = {
        name
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.FuseboardError)
    }
    assert rows.keys() == known - bases
    assert all(name in page for name in bases)
    for name, row in rows.items():
        set_by_it = set(re.findall(r"self\.(\w+) = ", inspect.getsource(getattr(errors, name))))
        assert set(re.findall(r"`(\w+)`", row[2])) == set_by_it, name
    assert f"| {MAX_ABANDONED_THREADS} sync attempts" in page
    assert f"At most {MAX_ABANDONED_THREADS} threads" in section(POLICIES, "## Timeout and budget")


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
