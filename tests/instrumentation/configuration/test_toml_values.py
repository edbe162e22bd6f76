"""What a file says becomes settings, whatever settings there are; what is wrong has a place."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

import pytest

import fuseboard
from fuseboard import Breaker, ConfigurationError, ErrorClass, Fallback, Policy, Retry, Validation
from fuseboard.policy.config.policy import _PARTS
from fuseboard.policy.file import PolicyFile, read_policies
from fuseboard.policy.file.patches import patch_of
from fuseboard.policy.file.places import line_of, lines_of
from fuseboard.policy.file.reading import MAX_BYTES, read


@pytest.fixture
def policies(tmp_path: Path) -> Callable[[str], PolicyFile]:
    def written(text: str) -> PolicyFile:
        path = tmp_path / "fuseboard.toml"
        path.write_text(text)
        return read_policies(path)

    return written


def of(file: PolicyFile, name: str, declared: Policy | None = None) -> Policy | None:
    return file.policy_for(name, declared, file.defaults_for(declared))


EVERYTHING = """
[tools.search]
timeout = 5
budget = 20.5
effects = "idempotent"
fallback = [{ value = { sky = "unknown" }, confidence = "low", on = ["L3_transient"] }]
validation = { non_empty = true }

[tools.search.retry]
attempts = 4
budget = false

[tools.search.breaker]
failure_ratio = 1
scope = "call"
also_counts = ["L2_access"]
"""


def test_every_kind_of_setting_can_be_written(policies: Callable[[str], PolicyFile]) -> None:
    assert of(policies(EVERYTHING), "search") == Policy(
        timeout=5,
        budget=20.5,
        effects="idempotent",
        fallback=Fallback(value={"sky": "unknown"}, on=(ErrorClass.L3_TRANSIENT,)),
        validation=Validation(non_empty=True),
        retry=Retry(attempts=4, budget=None),
        breaker=Breaker(failure_ratio=1, scope="call", also_counts=(ErrorClass.L2_ACCESS,)),
    )


def test_texts_of_an_enumeration_become_its_members(policies: Callable[[str], PolicyFile]) -> None:
    policy = of(policies(EVERYTHING), "search")
    assert policy is not None
    assert policy.breaker is not None
    assert [type(each) for each in policy.breaker.also_counts] == [ErrorClass]


def test_a_setting_of_each_part_can_be_written(policies: Callable[[str], PolicyFile]) -> None:
    """All parts of a policy, also those that came after this test: none is left out by type."""
    text = """
[tools.search]
effects = "none"
fallback = [{ value = 1 }]
switch_on = ["rate_limited"]
[tools.search.retry]
attempts = 2
[tools.search.breaker]
minimum_throughput = 7
[tools.search.limit]
concurrency = 3
[tools.search.cache]
ttl = 5
stale_on = ["L3_transient"]
redis = false
[tools.search.validation]
predicate = "builtins:bool"
schema = { type = "object", required = ["sky"] }
[tools.search.feedback]
repair = "builtins:dict"
corrections = 1
[tools.search.poll]
check = "builtins:repr"
interval = 2
"""
    policy = of(policies(text), "search")
    assert policy is not None
    parts = {
        each.name: getattr(policy, each.name)
        for each in dataclasses.fields(policy)
        if dataclasses.is_dataclass(getattr(policy, each.name))
    }
    assert parts.keys() == set(_PARTS)
    assert policy.limit == fuseboard.Limit(concurrency=3)
    assert policy.cache == fuseboard.Cache(ttl=5, stale_on=(ErrorClass.L3_TRANSIENT,))
    assert policy.validation == Validation(
        predicate=bool, schema={"type": "object", "required": ["sky"]}
    )
    assert policy.feedback == fuseboard.Feedback(dict, corrections=1)
    assert policy.poll == fuseboard.Poll(repr, interval=2)


CODE = Policy(
    retry=Retry(attempts=5, wait_initial=0.1), timeout=3, fallback=Fallback(len), effects="none"
)


@pytest.mark.parametrize(
    ("text", "declared", "expected"),
    [
        pytest.param("", CODE, CODE, id="nothing said"),
        pytest.param("", None, None, id="bare, nothing said"),
        pytest.param("[tools.search]", None, None, id="bare, an empty table"),
        pytest.param("[tools.other]\ntimeout=1", CODE, CODE, id="about another"),
        pytest.param(
            "[tools.search]\ntimeout=1", None, Policy(timeout=1), id="a bare tool is guarded"
        ),
        pytest.param(
            "[tools.search.retry]\nattempts=2",
            CODE,
            Policy(
                retry=Retry(attempts=2, wait_initial=0.1),
                timeout=3,
                fallback=Fallback(len),
                effects="none",
            ),
            id="key by key over the code",
        ),
        pytest.param(
            "[tools.search]\nretry=false\ntimeout=false\nfallback=[]",
            CODE,
            Policy(effects="none"),
            id="switched off",
        ),
        pytest.param(
            "[defaults]\ntimeout=9\nbudget=90\n[defaults.retry]\nattempts=9",
            CODE,
            Policy(
                retry=Retry(attempts=5, wait_initial=0.1),
                timeout=3,
                budget=90,
                fallback=Fallback(len),
                effects="none",
            ),
            id="defaults do not touch what the code gives",
        ),
        pytest.param(
            "[defaults.retry]\nattempts=9\nwait_max=2\n[tools.search.retry]\nattempts=2",
            None,
            Policy(retry=Retry(attempts=2, wait_max=2)),
            id="a tool's table over the defaults",
        ),
        pytest.param(
            "[defaults]\ntimeout=9\n[tools.search]\ntimeout=false",
            None,
            None,
            id="a default switched off for one tool",
        ),
    ],
)
def test_the_file_wins_over_the_code_and_the_code_over_defaults(
    policies: Callable[[str], PolicyFile],
    text: str,
    declared: Policy | None,
    expected: Policy | None,
) -> None:
    found = of(policies(text), "search", declared)
    if expected is not None and expected.fallbacks and expected.fallbacks[0].function is not None:
        assert found is not None
        assert found.fallbacks == CODE.fallbacks
    assert found == expected


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[tools.a.retry]\nattempts = 0", 2, "[tools.a.retry] attempts = 0: must be an int from 1"),
        ("[tools.a]\nretry = {attempts = 0}", 2, "[tools.a.retry] attempts = 0: must be an int"),
        ("\n[tools.a]\nretry.attempts = 0", 3, "attempts = 0: must be an int from 1 to 100"),
        ('[tools.a]\ntimeout = "5"', 2, 'timeout = "5": must be a number of seconds above 0'),
        ("[tools.a]\ntimeout = -1", 2, "or false"),
        ("[tools.a]\neffects = 'nome'", 2, "must be one of 'none', 'idempotent', 'unsafe'"),
        ("[tools.a.breaker]\nalso_counts = ['L9']", 2, "must be one of 'L2_access'"),
        ("[tools.a]\nretry = 3", 2, "retry = 3: must be a fuseboard.Retry or false"),
        ("[tools.a.retri]\nx = 1", 1, "no setting 'retri' of a Policy; did you mean 'retry'"),
        ("[tools.a.retry]\ntries = 1", 2, "no setting 'tries' of a Retry; there are attempts"),
        ("[tool.a]\ntimeout = 1", 1, "there is no table [tool]; did you mean 'tools'?"),
        ("tools = 3", 1, "must be a table of tables"),
        ("[tools]\na = 3", 2, "[tools.a]: must be a table, not 3"),
        ("defaults = 3", 1, "[defaults]: must be a table, not 3"),
        ("[defaults]\ntimeout = 0", 2, "[defaults] timeout = 0: must be a number"),
        ("[[tools.a.fallback]]\nvalue = 1\n[[tools.a.fallback]]\nsource = 'live'\nvalue = 2", 4,
         "a fallback is never live"),
        ("[tools.a]\nfallback = ['nowhere.at.all:f']", 2, "cannot be imported (Module"),
        ("[tools.a]\nfallback = 'os.path:nothing'", 2, "cannot be imported (AttributeError"),
        ("[tools.a]\nfallback = 'no function'", 2, "must be a function or a fuseboard.Fallback"),
        ("[tools.'x y'.retry]\nwait_max = 0.1", 2, "[tools.x y.retry] wait_max = 0.1: must be at"),
        ("[tools.a]\ntimeout =", None, "is not valid TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(
    policies: Callable[[str], PolicyFile], tmp_path: Path, text: str, line: int | None, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)) as caught:
        policies(text)
    place = f", line {line}: " if line is not None else ": "
    assert str(caught.value).startswith(f"{tmp_path / 'fuseboard.toml'}{place}")


@pytest.mark.parametrize(
    "text",
    [
        "[tools.a.cache]\nttl = 5",
        "[tools.a]\nswitch_on = ['rate_limited']",
        "[defaults]\neffects = 'none'\n[tools.a.cache]\nttl = 5",
        "[defaults.cache]\nttl = 5\n[tools.a]\ntimeout = 1",
    ],
)
def test_a_table_may_rely_on_what_the_code_gives(
    policies: Callable[[str], PolicyFile], text: str
) -> None:
    code = Policy(effects="none", fallback=Fallback(value=1))
    policy = of(policies(text), "a", code)
    assert policy is not None
    assert policy != code
    assert policy.fallbacks == code.fallbacks


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(ConfigurationError, match=re.escape(f"configuration file '{path}'")):
            read(path)
    path = tmp_path / "fuseboard.toml"
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigurationError, match="must be UTF-8"):
        read(path)
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigurationError, match="larger than"):
        read(path)
    path.write_bytes(b"\xef\xbb\xbf[tools.a]\r\ntimeout = 1\r\n")
    assert of(read_policies(path), "a") == Policy(timeout=1)


def test_lines_are_found_past_long_texts_comments_and_arrays() -> None:
    lines = lines_of('''# [tools.no]
a = """
[tools.neither]
b = 1
"""
[ "tools" . 'x.y' ] # a comment
key.inner = [
  1, # two
]
[[tools.list]]
k = 1
[tools.list.sub]
m = 1
[[tools.list]]
k = 2
''')
    assert ("tools", "no") not in lines
    assert ("tools", "neither") not in lines
    assert lines["a",] == 2
    assert lines["tools", "x.y"] == 6
    assert lines["tools", "x.y", "key", "inner"] == 7
    assert lines["tools", "list", "0", "k"] == 11
    assert lines["tools", "list", "0", "sub", "m"] == 13
    assert lines["tools", "list", "1", "k"] == 15
    assert line_of(lines, ("tools", "x.y", "other")) == 6
    assert line_of(lines, ("nowhere",)) is None


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    size: int = 1
    colours: Collection[Colour] = ()


@dataclass(frozen=True)
class Other:
    length: int = 1


@dataclass(frozen=True)
class Novel:
    """Settings that nobody has heard of yet, with every kind of type."""

    inner: Inner | Other | None = Inner()
    mode: Literal["a", "b"] = "a"
    rates: dict[str, float] = field(default_factory=dict)
    check: Callable[..., Any] | None = None
    kind: type[Any] | None = None
    names: tuple[str | Callable[..., Any], ...] = ()
    anything: Any = None
    flag: bool | None = None
    unresolvable: "Nowhere" = None  # type: ignore[name-defined] # noqa: F821, UP037
    shape: Mapping[str, Any] | Protocol | None = None
    derived: int = field(default=0, init=False)


def novel(tmp_path: Path, text: str, base: Novel | None = None) -> Novel:
    path = tmp_path / "novel.toml"
    path.write_text(text)
    document = read(path)
    made = patch_of(Novel, document.tables, document, ()).onto(base)
    assert isinstance(made, Novel)
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("inner.size = 3", Novel(inner=Inner(3))),
        ("inner = {length = 4}", Novel(inner=Other(4))),
        ("inner = false", Novel(inner=None)),
        ("inner.colours = ['red']", Novel(inner=Inner(colours=(Colour.RED,)))),
        ("mode = 'b'", Novel(mode="b")),
        ("rates = {x = 1.5}", Novel(rates={"x": 1.5})),
        ("check = 'os.path:join'", Novel(check=__import__("os").path.join)),
        ("check = 'collections:OrderedDict.fromkeys'",
         Novel(check=__import__("collections").OrderedDict.fromkeys)),
        ("kind = 'fuseboard:Retry'", Novel(kind=fuseboard.Retry)),
        ("names = ['plain', 'os.path:join']", Novel(names=("plain", __import__("os").path.join))),
        ("anything = ['os.path:join', {a = 1}]", Novel(anything=["os.path:join", {"a": 1}])),
        ("flag = false", Novel(flag=False)),
        ("unresolvable = {a = 1}", Novel(unresolvable={"a": 1})),
        ("shape = {type = 'object'}", Novel(shape={"type": "object"})),
    ],
)  # fmt: skip
def test_settings_that_are_new_work_by_their_types(
    tmp_path: Path, text: str, expected: Novel
) -> None:
    assert novel(tmp_path, text) == expected


def test_what_the_code_gives_stays_where_the_file_is_silent(tmp_path: Path) -> None:
    base = Novel(inner=Inner(7, (Colour.RED,)), mode="b")
    assert novel(tmp_path, "inner.size = 3", base) == Novel(Inner(3, (Colour.RED,)), "b")
    assert novel(tmp_path, "inner.length = 3", base) == Novel(Other(3), "b")


def test_a_field_that_is_no_argument_is_no_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no setting 'derived'"):
        novel(tmp_path, "derived = 3")


def test_a_file_that_everybody_may_write_names_no_functions(tmp_path: Path) -> None:
    path = tmp_path / "fuseboard.toml"
    path.write_text("[tools.a]\ntimeout = 1\nfallback = 'os.path:join'")
    path.chmod(0o666)
    with pytest.raises(ConfigurationError, match=r"line 3: .*everybody may write this file"):
        read_policies(path)
    path.chmod(0o664)
    policy = of(read_policies(path), "a")
    assert policy is not None
    assert [fallback.name for fallback in policy.fallbacks] == ["join"]
    path.write_text("[tools.a]\ntimeout = 1")
    path.chmod(0o666)
    assert of(read_policies(path), "a") == Policy(timeout=1)
