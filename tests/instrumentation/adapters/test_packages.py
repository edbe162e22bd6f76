"""What an adapter says of a framework that is missing, too old or newer than all it knows."""

from __future__ import annotations

import linecache
import warnings

import pytest

from fuseboard.adapters import packages
from fuseboard.adapters.packages import Package, require
from fuseboard.errors import ConfigurationError

PACKAGE = Package("made-up", extra="made_up", oldest="1.2", below="3")


def _installed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(packages, "version", lambda name: version)


@pytest.mark.parametrize(
    "version", ["1.2", "1.2.0", "1.10.3", "2.9.9.post1", "1.2rc1", "2.0+local"]
)
def test_a_release_within_the_range_is_taken(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    _installed(monkeypatch, version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert require("instrument_it", PACKAGE) == version


@pytest.mark.parametrize("version", ["1.1.9", "0.9", "1"])
def test_an_old_release_is_refused_with_the_way_to_a_newer_one(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    _installed(monkeypatch, version)
    with pytest.raises(ConfigurationError) as caught:
        require("instrument_it", PACKAGE)
    for word in ("instrument_it()", "made-up 1.2", version, "pip install -U 'fuseboard[made_up]'"):
        assert word in str(caught.value)


@pytest.mark.parametrize("version", ["3", "3.0.1", "10.0"])
def test_a_release_that_nobody_tried_gives_a_warning(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    _installed(monkeypatch, version)
    with pytest.warns(UserWarning, match=rf"instrument_it\(\).*{version} is installed"):
        assert require("instrument_it", PACKAGE) == version


def test_the_warning_is_about_the_line_that_installs_the_adapter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _installed(monkeypatch, "3")

    def instrument_it() -> None:
        require("instrument_it", PACKAGE)

    with pytest.warns(UserWarning, match="3 is installed") as caught:
        instrument_it()
    assert caught[0].filename == __file__
    assert linecache.getline(__file__, caught[0].lineno).strip() == "instrument_it()"


def test_a_missing_framework_is_named_with_the_line_that_installs_it() -> None:
    with pytest.raises(ConfigurationError) as caught:
        require("instrument_it", Package("surely-not-there", "made_up", "1", "2"))
    for word in ("instrument_it()", "'surely-not-there'", "pip install 'fuseboard[made_up]'"):
        assert word in str(caught.value)
