"""The catalogues hold what the source says, and the source says nothing past them."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fuseboard_dashboard
from fuseboard_dashboard.catalogue import Entry, parse

ROOT = Path(__file__).parents[2]
SOURCE = Path(str(fuseboard_dashboard.__file__)).parent
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
CHINESE = SOURCE / "texts" / "zh.po"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("texts", ROOT / "scripts" / "texts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["texts"] = module
    spec.loader.exec_module(module)
    return module


texts = _script()


def entries() -> list[Entry]:
    return parse(CHINESE.read_text(encoding="utf-8"))


# --- the catalogue ---------------------------------------------------------------------------
def test_every_text_is_a_literal() -> None:
    assert [use.where for use in texts.all_uses() if use.one is None] == []


def test_every_text_is_in_the_catalogue_and_nothing_else() -> None:
    used = {use.one for use in texts.all_uses()}
    known = {entry.one for entry in entries()[1:]}
    assert sorted(used - known) == [], "run `make texts`, and translate what it lists"
    assert sorted(known - used) == [], "run `make texts`"


def test_every_translation_is_there_with_the_same_placeholders() -> None:
    assert texts.faults(entries()) == []
    assert texts.ambiguous(texts.all_uses()) == []


def test_the_catalogue_is_as_the_script_writes_it() -> None:
    again = texts.dump(texts.renewed(entries(), texts.all_uses()))
    assert CHINESE.read_text(encoding="utf-8") == again, "run `make texts`"


NAMES = {
    "HTTP", "HTTP {status}", "p50", "p95", "p99", "{title} ({zone})", "{window} (> {limit}×)",
    "Span id",
    "SLOs", "Tokens", "{some} of {all}",
}  # fmt: skip
"""What a Chinese reader calls the same, or what is no words at all."""


def test_a_translation_is_chinese() -> None:
    same = [
        e.one
        for e in entries()[1:]
        if not re.search(r"[\u3002-\u9fff\uff00-\uffef]", "".join(e.forms))
    ]
    times = {english for english in same if "%b" in english}
    assert sorted(set(same) - NAMES - times) == []


def test_a_translation_has_chinese_punctuation() -> None:
    """A comma of the other width is what tells a machine's text from a writer's."""
    wrong = re.compile(r"[\u4e00-\u9fff][,;:?!]|[\u4e00-\u9fff]\.(\s|$)")
    assert [form for e in entries()[1:] for form in e.forms if wrong.search(form)] == []


@pytest.mark.parametrize(
    ("english", "translated", "wrong"),
    [
        ("{a} of {b}", "{b} 中 {a}", False),
        ("{a} of {b}", "{b} 中", True),
        ("{a} of {b}", "{b} 中 {a} {c}", True),
        ("{a:,}", "{a} 个", True),
        ("{a}", "{a", True),
        ("words", "", True),
    ],
)
def test_what_is_wrong_with_a_translation_is_found(
    english: str, translated: str, wrong: bool
) -> None:
    found = texts.faults([Entry(""), Entry(english, forms=(translated,))])
    assert bool(found) is wrong


def test_a_text_that_nothing_uses_is_dropped_and_a_new_one_waits() -> None:
    old = [
        Entry(""),
        Entry("gone", forms=("没了",)),
        Entry("kept", forms=("留",), comments=("# x",)),
    ]
    found = [texts.Use("a.py:1", "kept"), texts.Use("b.py:2", "kept"), texts.Use("b.py:3", "new")]
    assert texts.renewed(old, found)[1:] == [
        Entry("kept", None, ("留",), ("# x", "#: a.py", "#: b.py")),
        Entry("new", None, ("",), ("#: b.py",)),
    ]


def test_a_call_without_a_literal_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "some.py"
    module.write_text('t("a")\nt(b)\nn("c", d, 1)\nlater("e")\nx.n("f", "g", 2)\nMark("h", RED)\n')
    monkeypatch.setattr(texts, "SOURCE", tmp_path)
    assert [(use.where, use.one, use.many) for use in texts.uses(module)] == [
        ("some.py:1", "a", None),
        ("some.py:2", None, None),
        ("some.py:3", None, None),
        ("some.py:4", "e", None),
        ("some.py:5", "f", "g"),
        ("some.py:6", "h", None),
    ]


# --- nothing past the catalogue --------------------------------------------------------------
SHOWN: dict[str, tuple[int | str, ...]] = {
    "PageFrame": (0, 1), "panel": (0, 1), "section": (0, 1), "notice": (0,), "quiet": (0,),
    "Stat": (1, 4, 7, "note", "hint"), "badge": (1,), "heading": (0, 1),
    "table": (0,), "value_axis": (1,), "limit_line": (2,),
    "add_bar": ("name", "hovertemplate"), "add_scatter": ("name", "hovertemplate"),
    "Scatter": ("name", "hovertemplate"), "add_heatmap": ("name", "hovertemplate"),
    "add_annotation": ("text",), "update_xaxes": ("title",), "update_yaxes": ("title",),
    "selectbox": (0, "placeholder", "help"), "multiselect": (0, "placeholder", "help"),
    "toggle": (0, "help"), "button": (0, "help"), "text_input": (0, "placeholder", "help"),
    "text_area": (0, "placeholder", "help"), "number_input": (0, "placeholder", "help"),
    "checkbox": (0, "help"), "radio": (0, "help"), "slider": (0, "help"),
    "segmented_control": (0, "help"), "pills": (0, "help"), "tabs": (0,), "expander": (0,),
    "popover": (0, "help"), "form_submit_button": (0, "help"), "date_input": (0, "help"),
    "datetime_input": (0, "help"), "download_button": (0, "help"), "link_button": (0, "help"),
    "caption": (0,), "markdown": (0,), "write": (0,), "text": (0,), "toast": (0,), "info": (0,),
    "warning": (0,), "error": (0,), "success": (0,), "title": (0,), "header": (0,),
    "subheader": (0,), "spinner": (0,), "metric": (0, "help"), "status": (0,),
    "Column": (0, "help"), "TextColumn": (0, "help"), "NumberColumn": (0, "help"),
    "DatetimeColumn": (0, "help"), "LinkColumn": (0, "help", "display_text"),
    "CheckboxColumn": (0, "help"), "ProgressColumn": (0, "help"), "ListColumn": (0, "help"),
}  # fmt: skip
"""Who shows a text → which of its arguments do."""

ALLOWED = {
    "CSV", "Parquet",  # file formats are called so everywhere
    "p50", "p95", "p99", "HTTP", "fuseboard", "OTLP",
    "Language · 语言",  # whoever can't read the page must find it
}  # fmt: skip

WORD = re.compile(r"[A-Za-z]{2,}")
_UNREAD = re.compile(r"<(script|style)>.*?</\1>", re.DOTALL)
_NO_WORDS = re.compile(r":material/\w+:|%\{[^}]*\}|&\w+;|</?extra>")


def _plain(node: ast.expr) -> list[str]:
    """Return the words that an expression shows without asking for a translation."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(v.value for v in node.values if isinstance(v, ast.Constant))]
    if isinstance(node, ast.IfExp):
        return [*_plain(node.body), *_plain(node.orelse)]
    if isinstance(node, ast.BinOp):
        return [*_plain(node.left), *_plain(node.right)]
    if isinstance(node, ast.Dict):
        return [words for value in node.values for words in _plain(value)]
    if isinstance(node, ast.List | ast.Tuple):
        return [words for part in node.elts for words in _plain(part)]
    return []


def _names(tree: ast.AST) -> dict[str, list[str]]:
    """Return what is assigned to each plain name of a module or a function in it."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).extend(_plain(node.value))
    return found


def untranslated(source: str) -> list[str]:
    """Return what a module shows without asking for a translation."""
    tree = ast.parse(source)
    names = _names(tree)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).startswith("logger."):
            continue
        wanted = SHOWN.get(texts.called(node), ())
        shown = [node.args[i] for i in wanted if isinstance(i, int) and i < len(node.args)]
        shown += [k.value for k in node.keywords if k.arg in wanted]
        for argument in shown:
            words = names.get(argument.id, []) if isinstance(argument, ast.Name) else []
            found += [w for w in [*_plain(argument), *words] if _speaks(w)]
    return found + [words for words in _markup(tree) if _speaks(words)]


def _markup(tree: ast.AST) -> list[str]:
    """Return the texts between the tags of our own markup."""
    own = [words for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)
           for words in _plain(node) if "<" in words and ">" in words]  # fmt: skip
    read = (_UNREAD.sub("", words) for words in own)
    return [part for words in read for part in re.findall(r">([^<>]*)<", words)]


def _speaks(words: str) -> bool:
    shown = _NO_WORDS.sub("", words).strip()
    return shown not in ALLOWED and WORD.search(shown) is not None


@pytest.mark.parametrize("module", MODULES)
def test_a_module_shows_no_words_past_the_catalogue(module: str) -> None:
    assert untranslated((SOURCE / module).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        'st.button("Look again")',
        'st.button(f"Look again {x}")',
        'st.button("" if x else "Look")',
        'words = "Look again"\nst.caption(words)',
        'with panel("What changed"):\n    pass',
        'markup.Stat("id", "Calls", text, 1)',
        'markup.Stat("id", t("Calls"), text, 1, hint="Calls that ended")',
        "st.html('<div class=\"fb\">Nothing here</div>')",
        'st.html(f"<b>{x} calls</b>")',
        'st.column_config.TextColumn("Tool", help=t("x"))',
        'base.value_axis(figure, "calls")',
        'st.tabs(["One", t("two")])',
        'headers = (("Tool", False), (t("Calls"), True))\nmarkup.table(headers, rows)',
        'figure.update_xaxes(title={"text": "tool", "standoff": 6})',
        'figure.add_bar(hovertemplate="%{y:.1f} failed")',
    ],
)
def test_words_past_the_catalogue_are_found(source: str) -> None:
    assert untranslated(source) != []


def test_names_numbers_and_translated_words_are_left_alone() -> None:
    source = (
        'st.button(t("Look again"), key="fb_x", icon=":material/search:")\n'
        'markup.Stat("calls", t("Calls"), "12", 1, "", "warn", "errors?x=y")\n'
        "st.html(f'<span class=\"fb-quiet\">{x}</span>&nbsp;')\nst.download_button('CSV')\n"
    )
    assert untranslated(source) == []
