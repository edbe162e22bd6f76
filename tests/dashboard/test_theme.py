"""Colours for every eye and background, and numbers that do not mislead."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations

import pytest
from streamlit import config

from fuseboard.conventions import BreakerState, ErrorClass, Outcome
from fuseboard_dashboard import markup, theme

from .test_figures import contrast

FAMILIES = {
    "classes": theme.CLASS_MARKS,
    "outcomes": theme.OUTCOME_MARKS,
    "answers": theme.ANSWER_MARKS,
    "states": theme.STATE_MARKS,
    "severities": theme.SEVERITY_MARKS,
    "alert states": theme.ALERT_STATE_MARKS,
    "quantiles": theme.QUANTILE_MARKS,
}
# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
SIGHTS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                   (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                     (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                   (0.004733, 0.691367, 0.303900)),
}  # fmt: skip


def _lab(colour: str, sight: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    r, g, b = (
        min(1.0, max(0.0, sum(w * c for w, c in zip(row, linear, strict=True)))) for row in sight
    )
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _distance(one: str, other: str, sight: str) -> float:
    pairs = zip(_lab(one, SIGHTS[sight]), _lab(other, SIGHTS[sight]), strict=True)
    return sum((a - b) ** 2 for a, b in pairs) ** 0.5


@pytest.mark.parametrize("family", FAMILIES)
def test_hc_48_colours_are_legible_on_every_background(family: str) -> None:
    for mark in FAMILIES[family].values():
        for ground in theme.BACKGROUNDS:
            assert contrast(mark.colour, ground) >= 3, (mark.label, ground)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_hc_48_colours_stay_apart_for_every_sight(family: str, sight: str) -> None:
    colours = {mark.colour for mark in FAMILIES[family].values()}
    for one, other in combinations(sorted(colours), 2):
        assert _distance(one, other, sight) >= 15, (one, other)


def test_hc_48_words_on_a_loud_colour_can_be_read() -> None:
    states = [theme.STATE_MARKS[state] for state in ("half_open", "open", "isolated")]
    loud = [mark.colour for mark in (*theme.SEVERITY_MARKS.values(), *states)]
    for colour in (*loud, theme.SLATE, theme.DARK_PRIMARY):
        assert contrast(theme.ink(colour), colour) >= 4.5, colour
    assert theme.ink(theme.RED) == "#ffffff"
    assert theme.ink(theme.ORANGE) == theme.DARK_BACKGROUND


def test_every_value_of_the_conventions_has_its_mark() -> None:
    assert set(theme.CLASS_MARKS) == set(ErrorClass)
    assert set(theme.OUTCOME_MARKS) == set(Outcome)
    assert set(theme.STATE_MARKS) == {*BreakerState, theme.UNKNOWN_STATE}


def test_a_value_nobody_knows_is_shown_as_itself() -> None:
    assert theme.mark(theme.OUTCOME_MARKS, "sideways").label == "sideways"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (0, "0"), (9999, "9,999"), (12_345, "12.3k"),
     (23_456_789, "23.5M")],
)  # fmt: skip
def test_counts(value: float | None, text: str) -> None:
    assert theme.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0 %"), (1.0, "100 %"), (0.0004, "< 0.1 %"), (0.05, "5.0 %"),
     (0.99996, "> 99.9 %"), (0.123, "12.3 %")],
)  # fmt: skip
def test_a_little_never_reads_as_nothing_and_nearly_all_not_as_all(
    value: float | None, text: str
) -> None:
    assert theme.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0 s"), (0.00002, "< 0.1 ms"), (0.0012, "1.2 ms"), (0.042, "42 ms"),
     (0.34, "340 ms"), (3.129, "3.13 s"), (15.32, "15.3 s"), (150.0, "2.5 min"), (7200.0, "2.0 h")],
)  # fmt: skip
def test_seconds_carry_the_unit_that_suits_them(value: float | None, text: str) -> None:
    assert theme.seconds(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (45, "45 s"),
        (720, "12 min"),
        (59, "59 s"),
        (60, "1 min"),
        (88, "1 min 28 s"),
        (3600, "1 h"),
        (11_100, "3 h 5 min"),
        (86_430, "1 d"),
        (187_200, "2 d 4 h"),
    ],
)
def test_spans(seconds: int, text: str) -> None:
    assert theme.span(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(("part", "whole", "value"), [(1, 4, 0.25), (1, 0, None), (None, 3, None)])
def test_ratios_of_nothing_are_nothing(
    part: float | None, whole: float, value: float | None
) -> None:
    assert theme.ratio(part, whole) == value


def test_every_streamlit_option_exists_and_nothing_phones_home() -> None:
    options = theme.streamlit_options()
    assert set(options) <= set(config._config_options_template)
    assert options["browser.gatherUsageStats"] is False
    assert options["server.fileWatcherType"] == "none"
    assert options["client.toolbarMode"] == "minimal"


def test_text_colours_are_readable_on_their_backgrounds() -> None:
    options = theme.streamlit_options()
    for name in ("light", "dark"):
        text = str(options[f"theme.{name}.textColor"])
        for ground in ("backgroundColor", "secondaryBackgroundColor"):
            assert contrast(text, str(options[f"theme.{name}.{ground}"])) >= 7


def test_colours_are_written_in_the_theme_only() -> None:
    from pathlib import Path
    from re import findall

    folder = Path(str(theme.__file__)).parent
    for file in [*folder.rglob("*.py"), *folder.rglob("*.css")]:
        if file.name != "theme.py":
            found = findall(r"#[0-9a-fA-F]{6}\b", file.read_text(encoding="utf-8"))
            assert found == [], file.name


def test_names_are_escaped_and_long_ones_cut_in_the_middle() -> None:
    text = markup.name('<b onclick="x">' + "y" * 500 + "end")
    assert "<b" not in text
    assert "end<" in text
    assert len(text) < 1200
    assert markup.shorten("abc", 10) == "abc"
    assert len(markup.shorten("x" * 600, 80)) == 80
