"""What a page says while the store keeps it waiting: how long, and how far it has come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx

from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.markup import esc

PATIENCE_SECONDS: Final = 1.0
"""Nothing is said of shorter waits: words that come and go at every refresh only unsettle."""


@contextmanager
def waiting(
    say: Callable[[str], object], answers: Callable[[], int], patience: float = PATIENCE_SECONDS
) -> Iterator[None]:
    """Say once a second how long the block takes, from ``patience`` on.

    After the block nothing more is said, not even by a word that was on its way.

    Args:
        say: Shows markup; called from another thread, in this one's session.
        answers: Returns how many answers of the store have come.
        patience: Seconds before the first word, and between words.
    """
    started = time.monotonic()
    is_over = threading.Event()
    speaking = threading.Lock()

    def tell() -> None:
        while not is_over.wait(patience):
            with speaking:
                if not is_over.is_set():
                    say(words(time.monotonic() - started, answers()))

    teller = threading.Thread(target=tell, name="fuseboard-waiting", daemon=True)
    add_script_run_ctx(teller)
    teller.start()
    try:
        yield
    finally:
        # Streamlit ends a script that was overtaken by an exception: that ends the words, too.
        with speaking:
            is_over.set()


@contextmanager
def progress(line: str) -> Iterator[Callable[[float], object]]:
    """Show a bar while the block runs; yield what moves it, from 0 to 1.

    Args:
        line: What is being done.
    """
    place = st.empty()
    try:
        yield lambda share: place.progress(share, line)
    finally:
        place.empty()


def words(seconds: float, answers: int) -> str:
    """Return the markup for a wait."""
    so_far = n("{count} answer so far", "{count} answers so far", answers)
    line = t("Reading the store, {seconds} s · {so_far}", seconds=f"{seconds:.0f}", so_far=so_far)
    return f'<span class="fb-reading" data-testid="fb-reading" role="status">{esc(line)}</span>'
