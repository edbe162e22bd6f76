from __future__ import annotations

from pathlib import Path

import pytest

from fuseboard_server.settings import default_data_dir, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("1h", 3600), ("1.5h", 5400), ("30d", 2592000), ("2W", 1209600)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "h", "-1h", "0s", "1h30m", "1 month", "nan s", "1e3s"])
def test_what_is_no_duration_says_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"30d or 2w") as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["36501d", "99999999999w"])
def test_what_no_calendar_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hundred years"):
        parse_duration(text)
    assert parse_duration("36500d")


def test_the_default_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEBOARD_DATA", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_data_dir() == Path("/home/somebody/.local/share/fuseboard")
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert default_data_dir() == Path("/home/somebody/.local/share/fuseboard")
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    assert default_data_dir() == Path("/xdg/fuseboard")
    monkeypatch.setenv("FUSEBOARD_DATA", "~/mine")
    assert default_data_dir() == Path("/home/somebody/mine")
