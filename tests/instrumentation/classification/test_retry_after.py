"""HC-22: the forms of Retry-After."""

from __future__ import annotations

from email.message import Message
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseboard.classification.retry_after import MAX_RETRY_AFTER, retry_after_of

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 5 ", 5.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("86400", 86400.0),
        ("9" * 30, MAX_RETRY_AFTER),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("1e3", None),
        ("٣", None),
        ("garbage", None),
        ("", None),
        ("5, 10", None),
        ("9" * 5000, None),
        (formatdate(NOW + 60, usegmt=True), 60.0),
        (formatdate(NOW - 60, usegmt=True), 0.0),
        (formatdate(NOW + 60).replace(" -0000", ""), 60.0),
        ("Wed, 99 Foo 2026 00:00:00 GMT", None),
        (7, 7.0),
        (True, None),
        (b"8", 8.0),
        (None, None),
        pytest.param(object(), None, id="an object"),
    ],
    ids=repr,
)
def test_hc_22_forms(value: Any, seconds: float | None) -> None:
    assert retry_after_of({"Retry-After": value}, NOW) == seconds


def test_hc_22_milliseconds_win() -> None:
    assert retry_after_of({"retry-after-ms": "1500", "retry-after": "60"}, NOW) == 1.5
    assert retry_after_of({"retry-after-ms": "soon", "retry-after": "60"}, NOW) == 60


def test_hc_22_headers_of_clients() -> None:
    message = Message()
    message["RETRY-AFTER"] = "4"
    assert retry_after_of(message, NOW) == 4
    assert retry_after_of(httpx.Headers({"rEtRy-aFtEr": "4"}), NOW) == 4
    assert retry_after_of({"RETRY-AFTER": "4"}, NOW) == 4
    repeated = httpx.Headers([("retry-after", "5"), ("retry-after", "10")])
    assert retry_after_of(repeated, NOW) is None
    assert retry_after_of(None, NOW) is None
    assert retry_after_of(7, NOW) is None


@given(st.one_of(st.text(max_size=80), st.integers(), st.floats(), st.binary(max_size=70)))
def test_hc_22_never_raises_and_stays_in_bounds(value: Any) -> None:
    seconds = retry_after_of({"retry-after": value}, NOW)
    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER
