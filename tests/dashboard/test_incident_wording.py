"""Foreign names in sentences: safe in HTML and in Markdown, whatever they hold."""

from __future__ import annotations

import re

import pytest

from fuseboard_dashboard.incidents.wording import code, html, markdown, named, plain

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1)) **b** _i_",
    "a`b``c",
    "`quoted`",
    "two\nlines\r\n# heading",
    "@everyone #1 https://evil.example",
    "\x02inner\x03",
    "",
    "x" * 500,
    "| a | b |",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_code_in_markdown_and_nothing_else(name: str) -> None:
    line = markdown(f"tool {named(name)} failed")
    assert "\n" not in line
    found = re.fullmatch(r"tool (`+)( ?)(.*?)\2\1 failed", line)
    assert found is not None
    inner = found[3]
    longest = max((len(run) for run in re.findall("`+", inner)), default=0)
    assert longest != len(found[1])  # no run of backticks in it ends the code
    assert inner.strip() == plain(named(name)).strip()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_escaped_in_html(name: str) -> None:
    shown = html(f"tool {named(name)} <failed>")
    assert re.sub(r'<b class="fb-break">|</b>', "", shown).count("<") == 0
    assert "&lt;failed&gt;" in shown


def test_plain_text_has_no_marks_left() -> None:
    assert plain(f"{named('a')} and {named('b')}") == "a and b"


def test_own_words_keep_their_look_in_markdown() -> None:
    assert markdown("rose from 0 % to 5.8 % (L3): a_b*c[d]") == (
        r"rose from 0 % to 5.8 % (L3): a\_b\*c\[d\]"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), (" a", "`  a `"), ("", "` `")],
)
def test_code(text: str, written: str) -> None:
    assert code(text) == written
