"""The pages of policies have the settings, exceptions and actions that the code has."""

from __future__ import annotations

import dataclasses
import inspect
import re
from types import MappingProxyType

import pytest
from tests.docs.pages import (
    OVERVIEW,
    POLICY_PAGES,
    ROOT,
    defaults_of,
    documented,
    section,
    show,
    table,
    without_code,
)

import fuseboard
from fuseboard import conventions, errors, policy
from fuseboard.calls import packets
from fuseboard.classification.problems import MAX_PROBLEMS
from fuseboard.policy import breaker as breaker_module
from fuseboard.policy.config.feedback import MAX_CORRECTIONS
from fuseboard.policy.registry import MAX_BREAKERS
from fuseboard.policy.workers import MAX_ABANDONED_THREADS

ORDER = ["Use", "Defaults", "Telemetry", "Diagram", "Anti-patterns", "See also"]
PAGE_OF = MappingProxyType(
    {
        "Breaker": "circuit-breaker",
        "Budget": "sessions",
        "Cache": "cache",
        "Fallback": "fallback",
        "Feedback": "feedback",
        "Limit": "limits",
        "Mistake": "feedback",
        "Pending": "submit-and-poll",
        "Poll": "submit-and-poll",
        "Repeats": "sessions",
        "Retry": "retry",
        "Validation": "validation",
    }
)
# Their default is a list of classes or depends on other settings, and is said in words.
IN_WORDS = MappingProxyType(
    {
        "Cache": {"stale_on"},
        "Fallback": {"value", "name", "source", "confidence", "on", "effects"},
        "Feedback": {"on"},
        "Mistake": {"tool", "arguments", "error_class", "message", "problems", "attempt"},
    }
)
SETTINGS = {
    name: cls
    for name in policy.__all__
    if dataclasses.is_dataclass(cls := getattr(policy, name)) and isinstance(cls, type)
}
of_every_policy = pytest.mark.parametrize("name", POLICY_PAGES)


def page_of(name: str) -> str:
    return OVERVIEW if name == "Policy" else POLICY_PAGES[PAGE_OF[name]]


def wanted_defaults(cls: type) -> dict[str, str]:
    found = defaults_of(cls)
    enums = {
        field.name: show(str(field.default))
        for field in dataclasses.fields(cls)
        if isinstance(field.default, str)
    }
    return found | enums


@of_every_policy
def test_a_page_has_its_parts_in_order(name: str) -> None:
    page = POLICY_PAGES[name]
    assert re.findall(r"^## (.+)$", without_code(page), flags=re.MULTILINE) == ORDER
    opening = page.partition("## ")[0].strip().splitlines()
    assert opening[0].startswith("# ")
    assert len(opening) > 2, "a paragraph says what it is for"
    assert section(page, "## Use").lstrip().startswith("```python")
    assert "\n```\n" in section(page, "## Diagram")
    assert re.search(r"^- \*", section(page, "## Anti-patterns"), flags=re.MULTILINE)


@of_every_policy
def test_the_overview_leads_to_every_page(name: str) -> None:
    assert f"]({name}.md)" in section(OVERVIEW, "## Which one for which trouble")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    cls = SETTINGS[name]
    what = "field" if name in {"Mistake", "Pending"} else "setting"
    rows = table(page_of(name), f"{what} of `{name}`")
    found = {row[0].strip("`"): row[1].strip("`") for row in rows}
    wanted = wanted_defaults(cls)
    assert list(found) == list(wanted)
    for setting in wanted.keys() - IN_WORDS.get(name, set()):
        assert found[setting] == wanted[setting], setting


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_explained_to_whoever_reads_the_code(name: str) -> None:
    described = inspect.getdoc(SETTINGS[name]) or ""
    for field in dataclasses.fields(SETTINGS[name]):
        assert re.search(rf"^    {field.name}: ", described, flags=re.MULTILINE), field.name


def test_defaults_in_words_are_right() -> None:
    for cls, setting in ((fuseboard.Cache, "stale_on"), (fuseboard.Fallback, "on")):
        (default,) = [f.default for f in dataclasses.fields(cls) if f.name == setting]
        assert set(default) == set(fuseboard.ErrorClass) - {"L1_input"}
        assert documented(page_of(cls.__name__), f"setting of `{cls.__name__}`")[setting] == (
            "all but `L1_input"
        )
    assert documented(page_of("Feedback"), "setting of `Feedback`")["on"] == (
        "L1_input`, `L5_semantic"
    )
    assert set(fuseboard.Feedback(len).on) == {"L1_input", "L5_semantic"}
    assert f"at most {MAX_CORRECTIONS} |" in page_of("Feedback")
    assert f"at most {MAX_PROBLEMS}." in page_of("Validation")
    assert f"beyond {MAX_BREAKERS:,} breakers" in page_of("Breaker")


def test_the_defaults_of_a_fallback_are_right() -> None:
    found = documented(page_of("Fallback"), "setting of `Fallback`")
    of_function, of_value = fuseboard.Fallback(len), fuseboard.Fallback(value=0)
    handed = fuseboard.Fallback(len, hand_over=True)
    assert found["source"] == show(str(of_function.source))
    assert found["confidence"] == show(str(of_function.confidence))
    assert found["effects"] == show(str(of_function.effects))
    assert (of_function.name, of_value.name) == ("len", "default")
    assert (of_value.source, of_value.confidence) == ("default", "low")
    assert handed.confidence == "low"


def test_every_setting_of_a_redis_store_is_documented_with_its_default() -> None:
    page = POLICY_PAGES["cache"]
    assert documented(page, "setting of `RedisStore`") == defaults_of(fuseboard.RedisStore)


def test_every_option_of_a_session_is_documented_with_its_default() -> None:
    page = POLICY_PAGES["sessions"]
    assert documented(page, "option of `session`") == defaults_of(fuseboard.session)
    for function, name in ((fuseboard.turn, "turn"), (fuseboard.session.step, "step")):
        defaults = defaults_of(function)
        defaults.pop("self", None)
        options = ", ".join(f"{option}={default}" for option, default in defaults.items())
        assert f".{name}({options})`" in page
    for cls in (fuseboard.Progress, fuseboard.Spent):
        fields = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls)]
        assert all(re.search(rf"\b{field}\b", page) for field in fields)


def test_every_key_and_code_of_an_error_packet_is_documented() -> None:
    page = POLICY_PAGES["error-packet"]
    found = [row[0].strip("`") for row in table(page, "key")]
    assert found == list(fuseboard.ErrorPacket.__annotations__)
    rows = {row[0].strip("`"): row for row in table(page, "class")}
    assert list(rows) == [str(error_class) for error_class in fuseboard.ErrorClass]
    codes = {code for row in rows.values() for code in re.findall(r"`(\w+)`", row[1])}
    words = [*packets._BY_CLASS.values(), *packets._BY_STATUS.values()]
    assert codes == {each.code for each in [*words, *packets._BY_CLASSIFIER.values()]}


def test_every_exception_that_a_policy_raises_is_documented() -> None:
    page = section(OVERVIEW, "## Exceptions to catch")
    rows = {row[0].strip("`"): row for row in table(page, "exception")}
    bases = {"FuseboardError", "CallRejectedError", "ConfigurationError"}
    known = {
        name
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.FuseboardError)
    }
    raised_by_tools = {"AskUserError"}
    assert rows.keys() == known - bases - raised_by_tools
    assert all(name in page for name in bases | raised_by_tools)
    for name, row in rows.items():
        set_by_it = set(re.findall(r"self\.(\w+) = ", inspect.getsource(getattr(errors, name))))
        assert set(re.findall(r"`(\w+)`", row[2])) == set_by_it, name
    rejecting = {
        name for name in rows if issubclass(getattr(errors, name), errors.CallRejectedError)
    }
    sentence = page[: page.index("share the base `CallRejectedError`")].rpartition("|")[2]
    assert set(re.findall(r"`(\w+)`", sentence)) == rejecting
    assert f"| {MAX_ABANDONED_THREADS} sync attempts" in page
    assert f"At most {MAX_ABANDONED_THREADS} threads" in POLICY_PAGES["timeout-and-budget"]


def test_every_action_of_a_layer_is_documented_here_and_on_its_page() -> None:
    rows = list(table(section(OVERVIEW, "## What a call records"), "layer"))
    pairs = [(layer.strip("`"), action.strip("`")) for layer, action, *_ in rows]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == set(conventions.LAYER_ACTIONS)
    for (layer, action), row in zip(pairs, rows, strict=True):
        for page in re.findall(r"\]\(([\w-]+)\.md", row[3]):
            told = section(POLICY_PAGES[page], "## Telemetry")
            assert f"`{layer}`" in told, (page, layer)
            assert f"`{action}`" in told, (page, action)


def test_what_the_pages_name_on_the_dashboard_is_there() -> None:
    sources = (ROOT / "dashboard" / "fuseboard_dashboard").rglob("*.py")
    titles = set(re.findall(r'"([A-Z][\w ]+)"', "\n".join(path.read_text() for path in sources)))
    for name, page in {**POLICY_PAGES, "README": OVERVIEW}.items():
        told = "\n".join(line for line in page.splitlines() if "ashboard" in line)
        assert told, f"{name} does not say what is seen on the dashboard"
        assert set(re.findall(r"\*\*([^*]+)\*\*", told)) <= titles


def test_every_reason_of_a_transition_is_documented() -> None:
    source = inspect.getsource(breaker_module)
    moves = re.findall(r"self\._(?:open|close|move)\([^)]*?\"(\w+)\"", source)
    told = section(POLICY_PAGES["circuit-breaker"], "## Telemetry")
    rows = table(told, "reason of a transition")
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == set(moves)


def test_every_end_of_retries_is_documented() -> None:
    told = section(POLICY_PAGES["retry"], "## Telemetry")
    for end in conventions.RetryEnd:
        assert f'"{end}"' in told
