"""The language of a viewer: chosen, the browser's, or English; two at once; translators' slips."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fuseboard_collector.store import Store
from fuseboard_dashboard import language
from fuseboard_dashboard.catalogue import Catalogue, CatalogueError, Entry, dump, load, parse
from fuseboard_dashboard.language import later, match, n, speaking, t

from .conftest import APP, go_to, html, open_page, serve

HEADER = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n'


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, ...]]:
    """Make these the Chinese texts."""
    forms: dict[str, tuple[str, ...]] = {}
    own = Catalogue(forms, lambda count: 0)
    monkeypatch.setattr(language, "_catalogue", {"en": None, "zh": own}.__getitem__)
    return forms


def test_a_text_without_a_session_is_english() -> None:
    assert t("Board") == "Board"
    assert t("{count} of {all}", count=1, all=2) == "1 of 2"
    assert n("{count} call", "{count} calls", 1) == "1 call"
    assert n("{count} call", "{count} calls", 0) == "0 calls"


def test_a_text_is_translated_and_filled_in(texts: dict[str, tuple[str, ...]]) -> None:
    texts |= {"Hello {name}": ("你好，{name}",), "{count} call": ("{count} 次调用",)}
    with speaking("zh"):
        assert t("Hello {name}", name="alpha") == "你好，alpha"
        assert n("{count} call", "{count} calls", 1) == "1 次调用"
        assert n("{count} call", "{count} calls", 7) == "7 次调用"
    assert t("Hello {name}", name="alpha") == "Hello alpha"


def test_what_has_no_translation_is_english(texts: dict[str, tuple[str, ...]]) -> None:
    texts |= {"Untranslated": ("",), "{count} call": ()}
    with speaking("zh"):
        assert t("Unknown {what}", what="words") == "Unknown words"
        assert t("Untranslated") == "Untranslated"
        assert n("{count} call", "{count} calls", 2) == "2 calls"


@pytest.mark.parametrize("slip", ["{nmae}", "{name", "{0}", "{name.first}", "{name:d}", "{name!q}"])
def test_a_slip_of_a_translator_takes_no_page_down(
    slip: str, texts: dict[str, tuple[str, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    texts["Hello {name}"] = (slip,)
    with speaking("zh"), caplog.at_level(logging.WARNING):
        assert t("Hello {name}", name="alpha") == "Hello alpha"
    assert slip in caplog.text


def test_braces_of_a_text_without_values_stay(texts: dict[str, tuple[str, ...]]) -> None:
    texts["{x} as it is"] = ("原样 {x}",)
    with speaking("zh"):
        assert t("{x} as it is") == "原样 {x}"


def test_a_constant_is_read_in_the_language_of_the_reader(
    texts: dict[str, tuple[str, ...]],
) -> None:
    texts["Board"] = ("看板",)
    title = later("Board")
    with speaking("zh"):
        assert title() == "看板"
    assert title() == "Board"


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("zh-CN", "zh"), ("zh", "zh"), ("zh-Hans-SG", "zh"), ("ZH_cn", "zh"), ("zh-TW", "en"),
     ("zh-Hant-HK", "en"), ("en-GB", "en"), ("de-DE", "en"), ("", "en"), ("zha", "en")],
)  # fmt: skip
def test_a_browsers_tag_is_matched(tag: str, expected: str) -> None:
    assert match(tag) == expected


def test_every_language_has_a_catalogue_and_a_tag() -> None:
    found = {path.stem for path in (Path(str(language.__file__)).parent / "texts").iterdir()}
    assert set(language.LANGUAGES) == set(language.TAGS) == found | {language.ENGLISH}


def test_a_broken_catalogue_is_english_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(path: Path) -> Catalogue:
        raise CatalogueError(f"{path}, line 3")

    monkeypatch.setattr(language.catalogue, "load", broken)
    language._catalogue.cache_clear()
    try:
        with speaking("zh"):
            assert t("Board") == "Board"
        assert "line 3" in caplog.text
    finally:
        language._catalogue.cache_clear()


# --- catalogues ------------------------------------------------------------------------------
def test_a_catalogue_is_read_as_it_was_written(tmp_path: Path) -> None:
    entries = [
        Entry("", forms=("Plural-Forms: nplurals=2; plural=n > 1;\n",), comments=("# Words.",)),
        Entry('a "quoted" \\ text\nof two lines', forms=("ein\t„Text“ ≠ {x}",)),
        Entry("{count} call", "{count} calls", ("{count} Ruf", "{count} Rufe"), ("#: board.py",)),
        Entry("nothing yet"),
    ]
    path = tmp_path / "de.po"
    path.write_text(dump(entries), encoding="utf-8")
    assert parse(path.read_text(encoding="utf-8")) == entries
    found = load(path)
    assert found.text(entries[1].one) == "ein\t„Text“ ≠ {x}"
    assert [found.counted("{count} call", count) for count in (0, 1, 2)] == [
        "{count} Ruf", "{count} Ruf", "{count} Rufe"
    ]  # fmt: skip
    assert found.text("nothing yet") is found.text("never heard of") is None


def test_a_catalogue_may_be_laid_out_as_other_tools_do() -> None:
    text = HEADER + '\n\n#, fuzzy\nmsgid ""\n"two "\n"lines"\nmsgstr "zwei"\nmsgid "b"\nmsgstr "B"'
    assert [(e.one, e.forms) for e in parse(text)[1:]] == [("two lines", ("zwei",)), ("b", ("B",))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no header"),
        ('msgid "a"\nmsgstr "b"', "has no header"),
        (HEADER + 'msgid "a"\nmsgstr b', "line 5: 'msgstr b' is no line"),
        ('"a"', "line 1"),
        (HEADER + 'msgid "a"\nmsgstr "a\\"', "line 5"),
        (HEADER + 'msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgstr "c"', "'a' comes twice"),
    ],
)
def test_what_is_no_catalogue_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(CatalogueError) as found:
        parse(text)
    assert words in str(found.value)


# --- sessions --------------------------------------------------------------------------------
def pick(app: AppTest) -> str:
    return str(app.selectbox(key="fb_language_pick").value)


def choose(app: AppTest, wanted: str, *, before: str) -> None:
    with speaking(before):  # AppTest tells choices by their words, and asks us for them here
        app.selectbox(key="fb_language_pick").select(wanted).run()


def address(app: AppTest) -> list[str]:
    value = app.query_params["lang"]
    return [value] if isinstance(value, str) else list(value)


def titles(app: AppTest) -> str:
    return html(app).split("<h1>")[1].split("</h1>")[0]


def browser_in(locale: str | None, query: dict[str, str] | None = None) -> AppTest:
    app = AppTest.from_file(str(APP), default_timeout=60)
    app.context["locale"] = locale
    for name, value in (query or {}).items():
        app.query_params[name] = value
    return go_to(app, "")


def test_the_browsers_language_is_taken(store: Store) -> None:
    serve(store)
    assert pick(browser_in("zh-CN")) == "zh"
    assert pick(browser_in("fr-FR")) == pick(browser_in(None)) == "en"


def test_the_address_wins_over_the_browser(store: Store) -> None:
    serve(store)
    app = browser_in("zh-CN", {"lang": "en"})
    assert pick(app) == "en"
    assert address(app) == ["en"]


def test_a_choice_is_written_into_the_address_and_every_link(store: Store) -> None:
    serve(store)
    app = open_page("board")
    assert "lang" not in app.query_params
    assert "lang=" not in html(app)
    choose(app, "zh", before="en")
    assert address(app) == ["zh"]
    links = [part.split('"')[0] for part in html(app).split('href="')[1:]]
    assert links
    assert all("lang=zh" in link for link in links)
    choose(app, "en", before="zh")
    assert address(app) == ["en"]
    assert pick(app) == "en"


def test_a_choice_outlives_filters_pages_and_bare_links(store: Store) -> None:
    serve(store)
    app = open_page("board", {"lang": "zh", "tool": "alpha"})
    with speaking("zh"):  # AppTest tells choices by their words, and asks us for them here
        app.button(key="fb_reset").click().run()
        assert address(app) == ["zh"]
        go_to(app, "errors")
        assert pick(app) == "zh"
        del app.query_params["lang"]
        go_to(app, "retries")
    assert pick(app) == "zh"
    assert address(app) == ["zh"]


def test_a_choice_of_a_language_leaves_all_others_as_they_were(store: Store) -> None:
    serve(store)
    app = open_page("board", {"range": "1h", "class": "L3_transient", "tool": "alpha"})
    choose(app, "zh", before="en")
    assert app.selectbox(key="fb_range").value == "1h"
    assert app.multiselect(key="fb_classes").value == ["L3_transient"]
    assert app.multiselect(key="fb_tools").value == ["alpha"]
    assert app.selectbox(key="fb_range").options[2] == "最近 1 小时"


def test_an_unknown_language_is_said_and_left_out(store: Store) -> None:
    serve(store)
    app = open_page("board", {"lang": "tlh"})
    assert "There is no language &#x27;tlh&#x27;; choices: en, zh." in html(app)
    assert "lang" not in app.query_params
    assert pick(app) == "en"


def test_a_refresh_of_its_own_speaks_the_language_too(store: Store) -> None:
    """A refresh runs the fragment alone, in a new thread, without the page around it."""
    serve(store)

    def headings() -> None:
        from fuseboard_dashboard import language
        from fuseboard_dashboard.refresh import PageFrame, show

        show(PageFrame("x", language.t("Errors"), lambda view: None))

    app = AppTest.from_function(headings, default_timeout=60)
    app.session_state["fb_language"] = "zh"
    assert "错误" in html(app.run())
    assert language._memo.language is None, "what one thread remembers is no other's"


def test_a_choice_counts_at_once_whatever_was_remembered(store: Store) -> None:
    serve(store)
    app = open_page("errors", {"lang": "zh"})
    assert titles(app) == "错误"
    choose(app, "en", before="zh")
    assert titles(app) == "Errors"


def test_hc_46_two_sessions_read_two_languages_at_once(store: Store) -> None:
    serve(store)
    chinese, english = open_page("errors", {"lang": "zh"}), open_page("errors", {"lang": "en"})
    for _ in range(2):
        assert titles(chinese) == "错误"
        assert titles(english) == "Errors"
        with speaking("zh"):
            chinese.run()
        english.run()
